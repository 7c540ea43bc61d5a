"""Lines that look like errors: each row of the table is one, wherever it is read."""

import pytest

from tenure.engine.clip.log_lines import ERROR, FORMS, PHRASE, SUMMARY, Form, classified, telling


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.example)
def test_the_line_that_a_row_was_written_for_is_an_error(form: Form) -> None:
    assert PHRASE.search(form.example.lower())
    assert classified(form.example) in (ERROR, SUMMARY)
    assert telling([form.example], [0]) == [0]


@pytest.mark.parametrize(
    "line",
    ["all files were found", "0 errors", "wrote 12 files", "reading manifest of the page", "broken lines: 0", "merge of a and b"],
)
def test_a_line_that_only_has_a_word_of_one_is_none(line: str) -> None:
    assert classified(line) != ERROR
