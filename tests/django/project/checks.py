"""What applications do with Django's models, on tables that `migrate` has made."""

from __future__ import annotations

import datetime
from decimal import Decimal
from uuid import UUID

from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import Avg, Count, Exists, F, Max, OuterRef, Q, Sum, Value, Window
from django.db.models.functions import (
    Coalesce,
    ExtractYear,
    Rank,
    TruncDay,
    TruncMonth,
    Upper,
)
from django.test import Client

from tests.django.project.models import Author, Book, Tag

UTC = datetime.UTC


def values_come_back() -> None:
    author = Author.objects.create(name="Ada", born=datetime.date(1815, 12, 10))
    given = {
        "title": "Notes",
        "price": Decimal("12.50"),
        "about": {"pages": [1, None], "deep": {"er": "é"}},
        "words": ["a", "b,c"],
        "made": datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
        "lasts": datetime.timedelta(days=3, microseconds=5),
        "key": UUID(int=7),
    }
    book = Book.objects.create(author=author, sold=4, **given)
    found = Book.objects.get(pk=book.pk)
    assert {name: getattr(found, name) for name in given} == given
    assert found.size == 8 and author.joined is not None
    for name, value in given.items():
        assert Book.objects.filter(**{name: value}).get() == book, name


def many_are_written_together() -> None:
    author = Author.objects.get(name="Ada")
    books = [
        Book(author=author, title=f"t{n}", price=n, sold=n, made=_day(n), words=[str(n), "all"])
        for n in range(1, 201)
    ]
    made = Book.objects.bulk_create(books, batch_size=64)
    assert all(book.pk for book in made)
    for book in made:
        book.about = {"n": book.sold, "odd": book.sold % 2 == 1}
    assert Book.objects.bulk_update(made, ["about"], batch_size=50) == 200
    Tag.objects.bulk_create([Tag(word="new")])
    Tag.objects.bulk_create(
        [Tag(word="new"), Tag(word="old")],
        update_conflicts=True,
        unique_fields=["word"],
        update_fields=["word"],
    )
    Tag.objects.bulk_create([Tag(word="new")], ignore_conflicts=True)
    assert Tag.objects.count() == 2
    made[0].tags.set(Tag.objects.all())
    assert Book.objects.filter(tags__word="old").get() == made[0]
    _, was_made = Tag.objects.update_or_create(word="old", defaults={"word": "older"})
    assert not was_made


def expressions_and_aggregates() -> None:
    of_series = Book.objects.filter(title__startswith="t")
    assert of_series.filter(sold__lte=10).update(sold=F("sold") + 1000) == 10
    totals = of_series.aggregate(Sum("sold"), Max("price"), mean=Avg("price"))
    assert (totals["sold__sum"], totals["price__max"]) == (20100 + 10_000, 200)
    assert totals["mean"] == Decimal("100.5")
    months = of_series.annotate(month=TruncMonth("made")).values("month").order_by("month")
    assert [row["n"] for row in months.annotate(n=Count("*"))][:2] == [30, 29]
    ranked = of_series.annotate(rank=Window(Rank(), order_by=F("price").desc()))
    assert ranked.order_by("rank").first().price == 200
    author = Author.objects.annotate(
        n=Count("books", filter=Q(books__price__gt=100)),
        has=Exists(Book.objects.filter(author=OuterRef("pk"))),
        year=ExtractYear("born"),
        shown=Upper(Coalesce("name", Value("none"))),
    ).get()
    assert (author.n, author.has, author.year, author.shown) == (100, True, 1815, "ADA")
    assert of_series.distinct("author").count() == 1
    assert of_series.union(Book.objects.filter(title="Notes")).count() == 201


def documents_arrays_and_dates() -> None:
    assert Book.objects.filter(about__odd=True).count() == 100
    assert Book.objects.filter(about__n__gt=190).count() == 10
    assert Book.objects.filter(about__has_key="deep").get().about["deep"]["er"] == "é"
    assert Book.objects.filter(about__contains={"n": 7}).get().price == 7
    assert Book.objects.filter(about__pages__0=1).values_list("about__deep__er").get() == ("é",)
    assert Book.objects.filter(words__contains=["7"]).get().price == 7
    assert Book.objects.filter(words__overlap=["7", "8"]).count() == 2
    assert Book.objects.filter(words__0="9", words__len=2).count() == 1
    assert Book.objects.filter(made__year=2024, made__month=3, made__day=1).count() == 1
    assert Book.objects.filter(made__week_day=1).count() > 20
    assert Book.objects.filter(made__date__range=("2024-01-02", "2024-01-05")).count() == 4
    days = Book.objects.dates("made", "month")
    assert days[0] == datetime.date(2024, 1, 1)
    assert Book.objects.annotate(day=TruncDay("made")).filter(day=_day(3)).count() == 1


def transactions_and_savepoints() -> None:
    with transaction.atomic():
        Tag.objects.create(word="outer")
        try:
            with transaction.atomic():
                Tag.objects.create(word="outer")
        except IntegrityError:
            pass
        else:
            raise AssertionError("a word twice")
        with transaction.atomic():
            Tag.objects.create(word="inner")
            transaction.set_rollback(True)
    assert set(Tag.objects.filter(word__in=["outer", "inner"]).values_list("word", flat=True)) == {
        "outer"
    }
    done: list[str] = []
    with transaction.atomic(durable=True):
        transaction.on_commit(lambda: done.append("committed"))
        locked = Book.objects.select_for_update(of=("self",)).select_related("author")
        book = locked.get(title="t1")
        book.sold = F("sold") + 1
        book.save(update_fields=["sold"])
    assert done == ["committed"]


def references_may_wait_for_the_end() -> None:
    with transaction.atomic():
        book = Book.objects.create(author_id=10_000, title="early")
        Author.objects.create(pk=10_000, name="Late")
    assert book.author.name == "Late"
    try:
        with transaction.atomic():
            Book.objects.create(author_id=20_000, title="never")
            connection.check_constraints()
    except (DatabaseError, IntegrityError):
        pass
    else:
        raise AssertionError("there is no such author")
    with transaction.atomic():
        for title in ("t1", "t2"):  # two titles change places, which meets neither at the end
            Book.objects.filter(title=title).update(title=f"{title}, moved")
    assert Author.objects.get(pk=10_000).delete()[0] == 2


def rows_are_read_in_parts() -> None:
    with transaction.atomic():
        assert sum(1 for _ in Book.objects.iterator(chunk_size=17)) == Book.objects.count()
    books = Book.objects.prefetch_related("tags").defer("about").in_bulk(field_name="id")
    assert len(books) == Book.objects.count()


def pages_of_the_admin() -> None:
    User.objects.create_superuser("root", "root@example.com", "word")
    client = Client()
    assert client.login(username="root", password="word")
    book = Book.objects.filter(title="t7").get()
    pages = [
        "",
        "library/book/",
        "library/book/?q=t7&o=1.-3",
        "library/book/?made__year=2024&made__month=3",
        "library/book/add/",
        f"library/book/{book.pk}/change/",
        f"library/book/{book.pk}/delete/",
        f"library/book/{book.pk}/history/",
        "auth/user/",
        "auth/group/add/",
    ]
    for page in pages:
        assert client.get(f"/admin/{page}").status_code == 200, page
    added = client.post("/admin/library/tag/add/", {"word": "by-hand"}, follow=True)
    assert b"was added successfully" in added.content
    tag = Tag.objects.get(word="by-hand")
    changed = client.post(f"/admin/library/tag/{tag.pk}/change/", {"word": "new"}, follow=True)
    assert b"already exists" in changed.content
    gone = {"action": "delete_selected", "_selected_action": [tag.pk], "post": "yes"}
    assert b"Successfully deleted" in client.post("/admin/library/tag/", gone, follow=True).content
    assert User.objects.get().logentry_set.count() == 2


def _day(number: int) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, tzinfo=UTC) + datetime.timedelta(days=number)


CHECKS = (
    values_come_back,
    many_are_written_together,
    expressions_and_aggregates,
    documents_arrays_and_dates,
    transactions_and_savepoints,
    references_may_wait_for_the_end,
    rows_are_read_in_parts,
    pages_of_the_admin,
)
