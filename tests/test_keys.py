"""Keys of kept results: equal for equal objects, and none where code could change unnoticed."""

import subprocess
import sys
from functools import partial

import numpy as np
from sklearn.svm import SVC

import hsreject as hr
from hsreject.keys import key_of


class MyPrior(hr.VectorTV):
    """Somebody's prior, whose code may be another tomorrow."""


def my_function(x: float) -> float:
    return x


PARTS = (
    "(1.0, 'margin')",
    "np.arange(3)",
    "np.arange(4)",
    "partial(np.add, 1)",
    "hr.SegSALSA(hr.VectorTV(2.0))",
    "hr.SegSALSA(hr.VectorTV(1.0))",
    "hr.SceneClassifier(SVC(C=2.0), features=[hr.MNF(3), 'scale'])",
    "hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(2.0)))",
)


def test_keys_tell_objects_apart_and_are_the_same_in_every_process() -> None:
    names = {"np": np, "partial": partial, "hr": hr, "SVC": SVC}
    found = [key_of(eval(part, names)) for part in PARTS]
    assert None not in found
    assert len(set(found)) == len(PARTS)
    script = (
        "import numpy as np, hsreject as hr\nfrom functools import partial\n"
        "from sklearn.svm import SVC\nfrom hsreject.keys import key_of\n"
        f"print(*(key_of(part) for part in ({', '.join(PARTS)})))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert done.stdout.decode().split() == found


def test_code_that_may_be_edited_has_no_key(tmp_path) -> None:
    with (tmp_path / "file").open("w") as stream:
        for part in (
            MyPrior(1.0),
            hr.SegSALSA(MyPrior(1.0)),
            my_function,
            partial(my_function, 2),
            {"nested": [lambda x: x]},
            stream,
        ):
            assert key_of(1, part) is None
