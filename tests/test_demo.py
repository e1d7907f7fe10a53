"""`make demo` prints the scene and leaves a picture."""

from matplotlib.image import imread

from hsreject import demo


def test_the_demo_prints_and_draws(tmp_path, capsys) -> None:
    demo.main(tmp_path)
    said = capsys.readouterr().out
    assert "Soybean-mintill" in said
    assert "10249" in said
    picture = imread(tmp_path / "indian_pines.png")
    assert picture.shape[1] > 1500
    assert picture[..., :3].std() > 0.1  # not blank
