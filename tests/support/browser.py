"""Chromium without a window: the pages for people are opened in it and read as they are shown, also to a screen reader."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    None in (CHROMIUM, DRIVER), reason="Chromium is not here; it comes with Debian's packages chromium and chromium-driver"
)
WAIT_S = 30


@dataclass
class Browser:
    """A browser with one page."""

    driver: Chrome

    def open(self, url: str) -> None:
        self.driver.get(url)

    def find(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        """What is shown of each."""
        return [one.text for one in self.driver.find_elements(By.CSS_SELECTOR, css)]

    def count(self, css: str) -> int:
        return len(self.driver.find_elements(By.CSS_SELECTOR, css))

    def text(self, css: str) -> str:
        return self.find(css).text

    def until(self, what: Callable[["Browser"], Any]) -> Any:
        """The first true answer; what is replaced while it is read is read again."""
        wait = WebDriverWait(self.driver, WAIT_S, poll_frequency=0.02, ignored_exceptions=[StaleElementReferenceException])
        return wait.until(lambda _: what(self))

    def shows(self, css: str, part: str) -> str:
        """The text of an element once it contains `part`."""
        found: str = self.until(lambda page: part in page.text(css) and page.text(css))
        return found

    def choose(self, css: str, value: str) -> None:
        self.find(f"{css} option[value='{value}']").click()

    def problems(self) -> list[str]:
        """What the console has that is wrong since this was asked last; answers that are no success stand there, too."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]


@contextmanager
def chromium(width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """A new browser."""
    options = ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, Service(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
