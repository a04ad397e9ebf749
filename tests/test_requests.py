import gzip
import json

import pytest

from analyzer.errors import TraceFormatError
from analyzer.routing.request_log import load


@pytest.fixture
def log_of(tmp_path):
    def write(*requests, **options):
        lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
        path = tmp_path / "requests.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return load(path, **options)

    return write


def blocks_of(log):
    return [log.block[start:end].tolist() for start, end in zip(log.first_block, log.first_block[1:], strict=False)]


def notes_of(log):
    return [note.text for note in log.notes]


def test_mooncakes_lines_become_columns_in_nanoseconds(log_of):
    log = log_of(
        {"timestamp": 27482, "input_length": 655, "output_length": 52, "hash_ids": [46, 47]},
        {"timestamp": 30535, "input_length": 672, "output_length": 26, "hash_ids": [46, 2353]},
    )
    assert log.arrival_ns.tolist() == [0, 3_053_000_000]
    assert log.input_tokens.tolist() == [655, 672]
    assert log.output_tokens.tolist() == [52, 26]
    assert blocks_of(log) == [[0, 1], [0, 2]]


def test_a_gzip_file_is_known_by_its_first_bytes_and_not_by_its_name(tmp_path):
    path = tmp_path / "requests.jsonl"
    path.write_bytes(
        gzip.compress(b'{"timestamp": 0, "hash_ids": [1]}\n') + gzip.compress(b'{"timestamp": 1, "hash_ids": [1]}\n')
    )
    assert len(load(path)) == 2


def test_a_gzip_file_that_ends_early_gives_what_was_read_and_says_so(tmp_path):
    path = tmp_path / "requests.jsonl.gz"
    lines = "".join(f'{{"timestamp": {at}, "hash_ids": [{at * 7919 % 10007}]}}\n' for at in range(20_000))
    packed = gzip.compress(lines.encode())
    path.write_bytes(packed[: len(packed) // 2])
    log = load(path)
    assert 0 < len(log) < 20_000
    assert any("ends early" in text for text in notes_of(log))


def test_equal_tokens_are_one_block_only_behind_equal_tokens(log_of):
    log = log_of(
        {"timestamp": 0, "prompt_token_ids": [1, 1, 2, 2]},
        {"timestamp": 1, "prompt_token_ids": [1, 1, 2, 2]},
        {"timestamp": 2, "prompt_token_ids": [9, 9, 2, 2]},
        block_tokens=2,
    )
    first, second, third = blocks_of(log)
    assert first == second
    assert not set(first) & set(third)


def test_a_last_block_of_tokens_that_is_not_full_is_no_block(log_of):
    log = log_of({"timestamp": 0, "token_ids": [1, 2, 3, 4, 5]}, block_tokens=2)
    assert log.block_count.tolist() == [2]


def test_the_length_of_a_prompt_of_tokens_needs_no_field(log_of):
    log = log_of({"timestamp": 0, "token_ids": [1, 2, 3, 4, 5]}, block_tokens=2)
    assert log.input_tokens.tolist() == [5]


@pytest.mark.parametrize("name", ["hash_ids", "block_hashes", "prefix_hashes"])
def test_hashes_may_be_words(log_of, name):
    log = log_of({"timestamp": 0, name: ["c0ffee", "beef"]}, {"timestamp": 1, name: ["c0ffee", "f00d"]})
    first, second = blocks_of(log)
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_words_that_look_like_numbers_stay_words(log_of):
    log = log_of({"timestamp": 0, "block_hashes": ["12"]}, {"timestamp": 1, "block_hashes": ["012"]})
    assert log.distinct_blocks == 2


def test_hashes_of_64_bits_without_sign_stay_apart(log_of):
    log = log_of({"timestamp": 0, "block_hashes": [2**64 - 1, 5]}, {"timestamp": 1, "block_hashes": [2**63]})
    assert log.distinct_blocks == 3


def test_sessions_workers_and_cached_tokens_are_read_where_they_are_there(log_of):
    log = log_of(
        {"timestamp": 0, "hash_ids": [1], "session_id": "b", "worker": 1, "num_cached_tokens": 0},
        {"timestamp": 1, "hash_ids": [1], "user": "a", "worker": 0, "cached_tokens": 512},
        {"timestamp": 2, "hash_ids": [1]},
    )
    assert log.session.tolist() == [1, 0, -1]
    assert log.worker.tolist() == [1, 0, -1]
    assert log.workers == ("0", "1")
    assert log.cached_tokens.tolist() == [0, 512, -1]


def test_lengths_go_by_several_names(log_of):
    log = log_of(
        {"timestamp": 0, "hash_ids": [1], "prompt_tokens": 500, "completion_tokens": 7},
        {"timestamp": 1, "hash_ids": [1], "input_tokens": 400, "output_tokens": 8},
    )
    assert log.input_tokens.tolist() == [500, 400]
    assert log.output_tokens.tolist() == [7, 8]


def test_lines_that_are_no_requests_are_counted_and_the_first_is_named(log_of):
    log = log_of(
        {"timestamp": 0, "hash_ids": [1]},
        "",
        "# a comment",
        {"timestamp": 1, "input_length": 5},
        {"timestamp": 2, "hash_ids": [1]},
    )
    assert len(log) == 2
    assert (
        notes_of(log)[0]
        == "2 lines left out, 2 requests read; the first left out is line 3: JSON is malformed: invalid character (byte 0)"
    )


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ({"timestamp": 1, "hash_ids": "1,2"}, "Expected `array`, got `str`"),
        ({"timestamp": 1, "hash_ids": [1], "input_length": -3}, "Expected `int` >= 0"),
        ({"timestamp": "noon", "hash_ids": [1]}, "Expected `int | float | null`, got `str`"),
        ({"hash_ids": [1]}, "it has no time, where other lines have one"),
        (
            {"timestamp": 1, "hash_ids": [1], "input_length": 3, "cached_tokens": 4},
            "more tokens were cached than the prompt has",
        ),
    ],
)
def test_the_fault_of_a_line_is_told(log_of, line, fault):
    log = log_of({"timestamp": 0, "hash_ids": [1]}, line)
    assert len(log) == 1
    assert notes_of(log)[0].startswith(f"1 line left out, 1 request read; the first left out is line 2: {fault}")


def test_a_file_without_any_request_is_refused_with_its_first_fault(log_of):
    with pytest.raises(TraceFormatError, match=r"no request among 2 lines; line 1: none of hash_ids, .* is in it"):
        log_of({"name": "a trace event"}, {"name": "another"})


def test_an_empty_file_is_refused(log_of):
    with pytest.raises(TraceFormatError, match="no request among 0 lines"):
        log_of()


def test_prompts_shorter_than_a_block_are_refused_with_the_option_that_helps(log_of):
    with pytest.raises(TraceFormatError, match="holds not one block of 512 tokens; pass --block-tokens"):
        log_of({"timestamp": 0, "token_ids": [1, 2, 3]})


def test_requests_are_put_in_order_of_arrival(log_of):
    log = log_of({"timestamp": 9, "hash_ids": [1]}, {"timestamp": 4, "hash_ids": [2, 3]})
    assert log.arrival_ns.tolist() == [0, 5_000_000]
    assert log.block_count.tolist() == [2, 1]


def test_requests_of_one_instant_come_out_alike_in_whatever_order_they_went_in(log_of):
    requests = [
        {"timestamp": 0, "hash_ids": [1, 2], "output_length": 3, "session_id": "a"},
        {"timestamp": 0, "hash_ids": [1, 2], "output_length": 3, "session_id": "b"},
        {"timestamp": 0, "hash_ids": [1, 4], "output_length": 1, "session_id": "c"},
        {"timestamp": 0, "hash_ids": [], "output_length": 1, "session_id": "c"},
    ]
    one, other = log_of(*requests), log_of(*reversed(requests))
    assert blocks_of(one) == blocks_of(other)
    assert one.session.tolist() == other.session.tolist()


def test_a_log_without_times_keeps_the_order_of_the_file(log_of):
    log = log_of({"hash_ids": [7, 8]}, {"hash_ids": [1]})
    assert log.block_count.tolist() == [2, 1]
    assert log.arrival_ns.tolist() == [0, 0]
    assert notes_of(log) == ["no request has a time: they are taken in the order of the file, all at once"]


@pytest.mark.parametrize(
    ("field", "first", "second", "told"),
    [
        ("timestamp", 0, 2, "times read as ms since the log began"),
        ("timestamp", 1_700_000_000.5, 1_700_000_000.502, "times read as s since 1970"),
        ("timestamp", 1_700_000_000_500, 1_700_000_000_502, "times read as ms since 1970"),
        ("timestamp", 1_700_000_000_500_000_000, 1_700_000_000_502_000_000, "times read as ns since 1970"),
        ("arrival_time", 1_700_000_000.5, 1_700_000_000.502, "times read as s since 1970"),
    ],
)
def test_the_unit_of_times_shows_in_their_size(log_of, field, first, second, told):
    log = log_of({field: first, "hash_ids": [1]}, {field: second, "hash_ids": [1]})
    assert round(int(log.arrival_ns[1]), -4) == 2_000_000
    assert notes_of(log) == [told]


def test_the_unit_of_times_can_be_given(log_of):
    log = log_of({"timestamp": 0, "hash_ids": [1]}, {"timestamp": 2, "hash_ids": [1]}, time_unit="s")
    assert log.arrival_ns.tolist() == [0, 2_000_000_000]


def test_ids_that_follow_different_blocks_do_not_name_prefixes(log_of):
    log = log_of({"timestamp": 0, "hash_ids": [1, 2, 3]}, {"timestamp": 1, "hash_ids": [4, 2, 3]})
    assert (log.distinct_ids, log.distinct_blocks) == (4, 6)
    assert any("do not name prefixes" in text for text in notes_of(log))


def test_an_id_twice_in_one_prompt_is_two_blocks(log_of):
    log = log_of({"timestamp": 0, "hash_ids": [5, 5, 5]}, {"timestamp": 1, "hash_ids": [5, 5]})
    assert blocks_of(log) == [[0, 1, 2], [0, 1]]


def test_a_block_size_that_does_not_fit_the_prompts_is_told(log_of):
    log = log_of({"timestamp": 0, "input_length": 64, "hash_ids": [1, 2, 3, 4]})
    assert (
        "prompts do not fit blocks of 512 tokens; their lengths suggest about 16 tokens a block: pass --block-tokens"
        in notes_of(log)
    )


def test_a_prompt_that_ends_within_a_block_fits_with_and_without_a_hash_for_it(log_of):
    with_tail = {"timestamp": 0, "input_length": 1000, "hash_ids": [1, 2]}
    without = {"timestamp": 0, "input_length": 1000, "hash_ids": [1]}
    assert notes_of(log_of(with_tail, without)) == ["times read as ms since the log began"]
