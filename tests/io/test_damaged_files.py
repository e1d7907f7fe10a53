"""Files damaged at random: some hundred of the cases of `tools/fuzz_readers.py`."""

from tools.fuzz_readers import FINE, SEEDS, fuzz


def test_readers_refuse_or_open_damaged_files() -> None:
    outcomes = list(fuzz(6 * len(SEEDS)))
    assert [case for case in outcomes if case.verdict not in FINE] == []
    assert {case.verdict for case in outcomes} == set(FINE)
    assert {case.kind for case in outcomes} == set(SEEDS)
