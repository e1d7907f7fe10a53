"""A real Chromium, and an explorer that is open in it."""

import base64
import io
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A headless Chromium with a profile of its own."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium or not shutil.which("chromedriver"):
        pytest.skip("no chromium with chromedriver: the page was not tried in a browser")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


class Browser:
    """An open page, asked and moved as a reader would."""

    def __init__(
        self, driver, path: Path, fragment: str = "", *, width=1300, height=900, dark=False
    ) -> None:
        self.driver = driver
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        driver.get("about:blank")
        driver.get_log("browser")  # what other pages said
        driver.get(f"{path.as_uri()}{fragment}")
        self.wait("return document.body.className")

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str) -> Any:
        """Return what a script returns as soon as that is something."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if found := self.run(script):
                return found
            time.sleep(0.02)
        raise AssertionError(f"waited in vain for {script}")

    def drawn(self) -> None:
        """Wait until the page has shown what was changed."""
        self.driver.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        )

    def slide(self, name: str, value: float) -> None:
        self.run(
            "const slider = document.querySelector(`[name=${arguments[0]}]`);"
            "slider.value = arguments[1];"
            "slider.dispatchEvent(new Event('input', { bubbles: true }));",
            name,
            value,
        )
        self.drawn()

    def choose(self, name: str, value: object) -> None:
        self.run(
            "const found = document.querySelector(`select[name=${arguments[0]}], "
            "input[name=${arguments[0]}][value='${arguments[1]}']`);"
            "if (found.tagName === 'SELECT') found.value = arguments[1]; else found.checked = true;"
            "found.dispatchEvent(new Event('input', { bubbles: true }));",
            name,
            str(value),
        )
        self.drawn()

    def number(self, name: str, place: int = 0) -> float:
        return float(self.text(name, place, attribute="data-value"))

    def text(self, name: str, place: int = 0, *, attribute: str | None = None) -> str:
        node = f"document.querySelector('#numbers{place} [data-name={name}]')"
        return self.run(
            f"return {node}.{f'getAttribute(`{attribute}`)' if attribute else 'textContent'}"
        )

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def pixels(self) -> np.ndarray:
        """What the first map shows, as (y, x, channel)."""
        encoded = self.run("return document.querySelector('canvas').toDataURL('image/png')")
        return imread(io.BytesIO(base64.b64decode(encoded.partition(",")[2])))

    def box(self, selector: str) -> dict[str, float]:
        """Return where the first node that a selector finds lies on the screen."""
        node = "document.querySelector(arguments[0])"
        return self.run(f"return {node}.getBoundingClientRect().toJSON()", selector)
