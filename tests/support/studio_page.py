"""The studio in a browser: its server, its widgets by keyboard, and how long an answer takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# marimo preloads two images for the moment at which a page loses its server.
_MARIMOS = "was preloaded using link preload but not used"

# The element that has the focus, inside the components' shadow trees.
_FOCUSED = """() => {
  let at = document.activeElement;
  while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
  if (!at) return '';
  const by = (at.getAttribute('aria-labelledby') || '').split(' ').filter(Boolean)
    .map((id) => at.getRootNode().getElementById(id)).filter(Boolean).map((e) => e.innerText);
  const label = at.labels && at.labels.length ? at.labels[0].innerText : by.join(' ');
  return [at.tagName, at.getAttribute('role') || '', at.getAttribute('aria-label') || label,
          at.tagName === 'SELECT' ? '' : at.innerText].join('|');
}"""

# From the press of a key to the frame in which results of another query are painted.
_WATCH = """(old) => {
  window.answered = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('no answer within 30 s')), 30000);
    let pressed = 0;
    const press = () => { pressed = performance.now(); };
    addEventListener('keydown', press, {capture: true, once: true});
    const watch = new MutationObserver(() => {
      const now = document.querySelector('#wf-results');
      if (!now || now.dataset.query === old) return;
      watch.disconnect();
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - pressed)));
    });
    watch.observe(document.body, {subtree: true, childList: true, attributes: true});
  });
}"""


@dataclass
class Server:
    """A running studio: its process, and its address with the token."""

    process: subprocess.Popen[str]
    url: str

    def at(self, query: str) -> str:
        """Return the address of a state."""
        return f"{self.url}&{query}"


@contextmanager
def served(home: Path) -> Iterator[Server]:
    """Start `waterfill studio` on the default port or a free one; end it with SIGINT."""
    environment = {
        **os.environ,
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "waterfill", "studio", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,  # outside the checkout
        env=environment,
    )
    try:
        assert process.stdout is not None
        yield Server(process, process.stdout.readline().strip())
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def problems(shown: Any) -> list[str]:
    """Return the errors of a page, without the warnings of marimo's own page."""
    return [text for text in shown.problems if _MARIMOS not in text]


def ready(page: Any) -> None:
    """Wait until results are there."""
    page.wait_for_selector("#wf-results")


def tab_to(page: Any, wanted: str, *, key: str = "Tab", most: int = 60) -> None:
    """Press Tab (or Shift+Tab) until the focus is on the element with this text, label or role."""
    seen = []
    for _ in range(most):
        page.keyboard.press(key)
        seen.append(page.evaluate(_FOCUSED)[:80])
        if wanted in seen[-1]:
            return
    raise AssertionError(f"no {wanted} within {most} tabs: {seen}")


def answer_ms(page: Any, key: str = "ArrowRight") -> float:
    """Press a key on the focused slider; return the milliseconds until its answer is painted."""
    page.evaluate(_WATCH, page.get_attribute("#wf-results", "data-query"))
    page.keyboard.press(key)
    return float(page.evaluate("window.answered"))
