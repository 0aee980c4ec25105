"""Install a wheel in a clean environment of every Python here, and try it.

``python packaging/try_wheel.py target/dist/*.whl`` prints a line a Python; the exit status is 1 if
one of them failed, or if there was none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14", "python3.14t", "python3.15")

# A score, an evidence, a fit, a file and a process: exact values where there are some.
SMOKE = """
import importlib.metadata, subprocess, sys, sysconfig, tempfile
from pathlib import Path
import polyabayes as pb
from polyabayes import _core
topics = [[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4]]
model = pb.LatentDirichletAllocation.from_parameters(doc_topic_prior=0.1, topic_word=topics)
assert abs(pb.log_likelihood(model, [[1, 1, 1, 0]]).total + 4.474050553487056) < 1e-12
evidence = pb.AllocationModel.nmf(2).log_evidence([[4, 3, 0], [0, 0, 3], [0, 0, 3]])
assert abs(evidence.value + 17.254165) < 1e-5
fitted = pb.LatentDirichletAllocation(2, max_iter=5, random_state=0).fit([[3, 1, 0], [0, 1, 4]])
path = Path(tempfile.mkdtemp()) / "m.safetensors"
fitted.save(path)
assert (pb.load(path).components_ == fitted.components_).all()
told = subprocess.run([Path(sys.executable).with_name("polyabayes"), "--version"],
                      capture_output=True, text=True, check=True)
assert told.stdout.split() == ["polyabayes", pb.__version__]
assert "site-packages" in pb.__file__
shipped = {file.name for file in importlib.metadata.files("polyabayes")}
assert {"LICENSE", "THIRDPARTY.yml"} <= shipped
assert not sysconfig.get_config_var("Py_GIL_DISABLED") or not sys._is_gil_enabled()
print(sys.version.split()[0], Path(_core.__file__).name)
"""


def works(python: str, wheel: Path) -> bool:
    """Whether the wheel can be installed and used."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        commands = [
            [python, "-m", "venv", home / "venv"],
            [home / "venv" / "bin" / "pip", "install", "--quiet", wheel],
            [home / "venv" / "bin" / "python", "-c", SMOKE],
        ]
        for command in commands:
            done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.stdout.write(f"{python}: failed\n{done.stderr}")
                return False
        sys.stdout.write(f"{python}: {done.stdout}")
        return True


def usable(python: str) -> bool:
    """Whether this Python is here, and not only its name."""
    if shutil.which(python) is None:
        return False
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def fits(python: str, wheel: str) -> bool:
    """Whether the wheel is made for this Python: a free-threaded one has its own."""
    return python.endswith("t") == ("-cp314t-" in wheel)


def main(wheels: list[str]) -> int:
    """Try every wheel with every Python that it is made for."""
    found = [python for python in PYTHONS if usable(python)]
    pairs = [(python, wheel) for python in found for wheel in wheels if fits(python, wheel)]
    tried = [works(python, Path(wheel).resolve()) for python, wheel in pairs]
    return 0 if tried and all(tried) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
