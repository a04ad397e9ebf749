"""The report as JSON: valid against the schema that ships, and read back as it was."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from drawn_reports import DRAWINGS, hostile_report, many_ranks, report_of
from jsonschema import Draft202012Validator

import analyzer
from analyzer.errors import TraceFormatError
from analyzer.render.formats.json import render
from analyzer.schema.report import from_json, to_json

SCHEMA = json.loads((Path(analyzer.__file__).parent / "data" / "report.schema.json").read_text(encoding="utf-8"))
REPORTS = {**{name: report_of(name) for name in DRAWINGS}, "hostile": hostile_report(), "64 ranks": many_ranks(64, 20)}


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_valid_against_the_schema_that_ships(name):
    assert [
        error.message for error in Draft202012Validator(SCHEMA).iter_errors(json.loads(render(REPORTS[name])))
    ] == []


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_read_back_as_it_was(name):
    assert from_json(to_json(REPORTS[name]), "saved.json") == REPORTS[name]


def test_every_time_and_size_is_a_whole_number():
    def fractions(value, key=""):
        if isinstance(value, dict):
            return [found for name, each in value.items() for found in fractions(each, name)]
        if isinstance(value, list):
            return [found for each in value for found in fractions(each, key)]
        return [key] if isinstance(value, float) and key.endswith(("_ns", "bytes")) else []

    assert fractions(json.loads(render(report_of("tp")))) == []


def test_a_report_of_another_schema_is_refused_with_both_numbers():
    with pytest.raises(TraceFormatError, match=r"saved\.json: report of schema 2, this version reads schema 1"):
        from_json(to_json(replace(report_of("tp"), schema=2)), "saved.json")


def test_what_is_no_report_is_refused_with_the_command_that_writes_one():
    with pytest.raises(TraceFormatError, match="shardscope diagnose RUN --format json -o FILE"):
        from_json("{}", "saved.json")
