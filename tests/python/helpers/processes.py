"""Work in processes of their own: Python, and a browser."""

import shutil
import subprocess
import sys

import pytest


def python(*arguments, **options):
    """Run Python with these arguments; options are those of ``subprocess.run``."""
    command = [sys.executable, *map(str, arguments)]
    options = {"capture_output": True, "text": True, "check": False, "timeout": 300, **options}
    return subprocess.run(command, **options)


def limited(limit, n_bytes, *arguments):
    """Run Python under a limit of the system, as ``RLIMIT_AS``."""
    resource = pytest.importorskip("resource")
    which = getattr(resource, limit)
    return python(*arguments, preexec_fn=lambda: resource.setrlimit(which, (n_bytes, n_bytes)))


def in_browser(page):
    """The document that a real browser makes of a page."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent}/home"]
    flags += ["--virtual-time-budget=2000", "--dump-dom", page.as_uri()]
    how = {"capture_output": True, "text": True, "timeout": 120, "check": True}
    done = subprocess.run([browser, *flags], **how)
    return done.stdout
