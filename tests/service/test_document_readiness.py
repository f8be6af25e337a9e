"""What /readyz says of the folder of documents."""

import pytest

from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio


async def test_documents_that_cannot_be_read_are_named_from_the_start(tmp_path):
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "notes.md").write_text("The bridge was built in 1901.")
    (documents / "scan.pdf").write_bytes(b"%PDF-1.7 damaged")
    search = {"folder": str(documents), "providers": ["folder"]}
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, search=search) as it:
            # The index is built in the background; a search waits for it.
            await it.service.runtime.search.search("bridge", limit=1)
            found = await it.get("/readyz")
    assert found["search"]["ready"] is True
    assert "scan.pdf" in found["search"]["why"]
