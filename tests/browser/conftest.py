"""A page in the browser, for all tests that open one."""

import os
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Page, find_chromium, opened_page


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    browser = find_chromium()
    if browser is None:
        assert os.environ.get("CI") != "true", "CI must have chromium: .ci/run installs it"
        pytest.skip("no chromium")
    with opened_page(browser) as opened:
        yield opened
