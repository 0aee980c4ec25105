"""Run the audits that this machine can run, and say which it cannot.

    python fuzz/audit.py

Advisories need their data from the network; Miri a nightly toolchain (`rustup toolchain install
nightly --component miri,rust-src`). The status is 1 where an audit that runs finds anything, or
cannot look all packages up.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Tests of the core that end within minutes under an interpreter, by the rooms that index most.
_MIRI = ("counts::", "math::categorical")
# Hostile arrays and exact values, under a checker of memory.
_RUNNER = "target.x86_64-unknown-linux-gnu.runner=['valgrind', '--quiet', '--error-exitcode=9']"
_VALGRIND = ["--config", _RUNNER, "--test", "core", "--", "hostile::", "exact::"]
_REQUIREMENTS = ["numpy", "scipy", "scikit-learn", "safetensors"]


def _answers(command: list[str]) -> bool:
    return (
        shutil.which(command[0]) is not None
        and subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0
    )


def _run(name: str, probe: list[str], command: list[str]) -> bool:
    """Run an audit that answers to its probe; True where it found nothing or cannot run."""
    if not _answers(probe):
        print(f"{name}: not run, as `{' '.join(probe)}` fails here", flush=True)
        return True
    print(f"{name}: {' '.join(command)}", flush=True)
    is_clean = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    print(f"{name}: {'nothing found' if is_clean else 'FOUND, or failed'}", flush=True)
    return is_clean


def _pinned() -> list[str]:
    from importlib.metadata import version

    return [f"{name}=={version(name)}" for name in _REQUIREMENTS]


def main() -> int:
    """Run all; the status is 1 where one found anything."""
    pip_audit = [sys.executable, "-m", "pip_audit"]
    requirements = ROOT / "target" / "audited.txt"
    requirements.parent.mkdir(exist_ok=True)
    requirements.write_text("".join(f"{line}\n" for line in _pinned()))
    miri = ["cargo", "+nightly", "miri"]
    clean = [
        _run(
            "licences and sources",
            ["cargo", "deny", "--version"],
            ["cargo", "deny", "check", "licenses", "bans", "sources"],
        ),
        _run("advisories of crates", ["cargo", "audit", "--version"], ["cargo", "audit"]),
        _run(
            "advisories of Python packages",
            [*pip_audit, "--version"],
            [*pip_audit, "--strict", "--no-deps", "--disable-pip", "-r", str(requirements)],
        ),
        _run("Miri", [*miri, "--version"], [*miri, "test", "--lib", "--", *_MIRI]),
        _run("valgrind", ["valgrind", "--version"], ["cargo", "test", "--release", *_VALGRIND]),
    ]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
