"""Pictures of promises show the numbers of the objects that they draw."""

import numpy as np
import pytest

import hsreject as hr
from tests.certification.scenes import placed, ranked_map
from tests.plot.drawing import legend, line, row


@pytest.mark.parametrize("max_error", [0.1, 0.001])
def test_the_tested_sequence_and_where_it_stopped(max_error) -> None:
    label, confidence, truth = ranked_map()
    sample = hr.draw_sample(label, 400).with_reference(truth)
    made = hr.certify(label, confidence, sample, max_error=max_error)
    (ax,) = row(1)
    hr.plot.CertificateDisplay(made).plot(ax)
    passed, failed = line(ax, "90 % bound"), line(ax, "failed")
    assert len(passed) == len(made.tests) - 1
    last = made.tests[-1]
    assert failed[-1] == pytest.approx([last.coverage, last.upper_bound(0.1)])
    assert (passed[:, 1] <= max_error).all()
    assert len(line(ax, "sampled")) == len(made.tests)
    wanted = "nothing certified" if made.threshold is None else f"{100 * made.coverage:.1f} %"
    assert wanted in ax.get_title()


def test_areas_with_whiskers_beside_counted_pixels() -> None:
    values, confidence, truth = ranked_map()
    label = placed(np.where(confidence < 0.2, 0, values))
    sample = hr.draw_sample(label, 400).with_reference(truth)
    found = hr.assess(label, sample)
    (ax,) = row(1)
    hr.plot.AreaDisplay(found).plot(ax)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["corn", "bare soil", "water", "rejected"]
    widths = [patch.get_width() for patch in ax.patches]
    assert widths == pytest.approx([*found.by_class.mapped_area.values, found.rejected_area])
    assert ax.get_xlabel() == "area in ha"
    assert legend(ax) == ["counted pixels", "estimated, 95 %"]
