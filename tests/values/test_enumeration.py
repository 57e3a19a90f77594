"""Labels are texts that sort by their place, and new ones fit in between."""

from __future__ import annotations

import copy
import pickle

import pytest

from qserver.errors import InvalidParameterValue, InvalidTextRepresentation
from qserver.values.enumeration import Enumeration, Label, enumeration_of

mood = enumeration_of("mood", ("sad", "ok", "happy"))
sad, ok, happy = mood.labels


def test_labels_sort_by_position_and_are_texts() -> None:
    assert sad < ok < happy and happy > ok >= ok and sad <= sad
    assert sorted([happy, sad, ok]) == ["sad", "ok", "happy"]
    assert sad == "sad" and hash(sad) == hash("sad") and f"{sad}!" == "sad!"
    assert repr(ok) == "Label('ok', 1.0)"


def test_a_text_is_a_label_or_an_error() -> None:
    assert mood.label_of("ok") is ok
    with pytest.raises(InvalidTextRepresentation) as caught:
        mood.label_of("OK")
    assert caught.value.message == 'invalid input value for enum mood: "OK"'


def test_a_new_label_takes_its_place_and_moves_no_other() -> None:
    grown = mood.with_label("fine", after="ok").with_label("awful", before="sad")
    grown = grown.with_label("glad", before="happy").with_label("ecstatic")
    assert grown.labels == ("awful", "sad", "ok", "fine", "glad", "happy", "ecstatic")
    assert list(grown.labels) == sorted(grown.labels)
    assert {label: label.position for label in mood.labels}.items() <= {
        label: label.position for label in grown.labels
    }.items()
    assert enumeration_of("empty", ()).with_label("first").labels == ("first",)


def test_labels_are_checked() -> None:
    with pytest.raises(InvalidParameterValue, match='enum label "ok" already exists'):
        mood.with_label("ok")
    with pytest.raises(InvalidParameterValue, match='"fine" is not an existing enum label'):
        mood.with_label("good", after="fine")
    with pytest.raises(InvalidParameterValue, match="invalid enum label") as caught:
        enumeration_of("mood", ("ä" * 32,))
    assert caught.value.detail == "Labels must be 63 bytes or less."


def test_an_enumeration_survives_its_plain_form() -> None:
    grown = mood.with_label("fine", after="ok")
    back = Enumeration.from_plain(grown.to_plain())
    assert back == grown
    assert [label.position for label in back.labels] == [0.0, 1.0, 1.5, 2.0]


def test_a_label_is_copied_with_its_position() -> None:
    for made in (copy.deepcopy(happy), pickle.loads(pickle.dumps(happy))):
        assert type(made) is Label and made.position == 2.0 and made == "happy"
