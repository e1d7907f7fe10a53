"""What the pictures of a run are given to draw."""

import numpy as np
from hsreject.pipeline.pictures import draw_measures

import hsreject as hr
from hsreject.plot import BreakEvenCostDisplay


def test_points_of_joint_rejection_are_isolated_among_the_costs(monkeypatch, tmp_path) -> None:
    curve = hr.rejection_curve(np.arange(20) % 3 > 0, np.linspace(0.1, 0.9, 20))
    joint = curve.assign(failure_probability=curve.rejected_fraction / 2)
    seen = []
    monkeypatch.setattr(
        BreakEvenCostDisplay, "plot", lambda display, ax: seen.append(display.isolated)
    )
    pictures = list(draw_measures({"sequential": curve, "joint": joint}, tmp_path))
    assert seen == [{"joint"}]
    assert all(picture.file.exists() for picture in pictures)
