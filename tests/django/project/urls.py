"""The pages of the project: the admin alone."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from tests.django.project.models import Author, Book, Tag


class Books(admin.ModelAdmin):
    list_display = ("title", "author", "price")
    list_filter = ("author", "tags")
    search_fields = ("title", "author__name")
    date_hierarchy = "made"
    filter_horizontal = ("tags",)


if not admin.site.is_registered(Book):
    admin.site.register(Book, Books)
    admin.site.register([Author, Tag])
urlpatterns = [path("admin/", admin.site.urls)]
