"""Tables with what PostgreSQL's backend of Django knows to make."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower, Now


class Author(models.Model):
    name = models.CharField(max_length=80, db_index=True)
    born = models.DateField(null=True)
    joined = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (models.UniqueConstraint(Lower("name"), name="author_name"),)


class Tag(models.Model):
    word = models.SlugField(unique=True)


class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE, related_name="books")
    title = models.TextField()
    price = models.DecimalField(max_digits=8, decimal_places=2, default=0)
    sold = models.PositiveIntegerField(default=0)
    about = models.JSONField(default=dict)
    words = ArrayField(models.CharField(max_length=20), default=list)
    made = models.DateTimeField(null=True)
    lasts = models.DurationField(null=True)
    key = models.UUIDField(null=True)
    tags = models.ManyToManyField(Tag)
    size = models.GeneratedField(
        expression=models.F("sold") * 2, output_field=models.IntegerField(), db_persist=True
    )

    class Meta:
        indexes = (
            models.Index(fields=["title", "-price"], name="book_title"),
            models.Index(fields=["sold"], condition=models.Q(sold__gt=0), name="book_sold"),
        )
        constraints = (
            models.CheckConstraint(condition=models.Q(price__gte=0), name="book_price"),
            models.UniqueConstraint(
                fields=["author", "title"],
                name="book_of_author",
                deferrable=models.Deferrable.DEFERRED,
            ),
        )
