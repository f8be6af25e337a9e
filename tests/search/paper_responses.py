"""What scholarly engines answer, written after the forms that their documentation shows."""

from typing import Any

# https://developers.openalex.org/api-reference/works
OPENALEX: dict[str, Any] = {
    "meta": {"count": 2, "db_response_time_ms": 30, "page": 1, "per_page": 5, "groups_count": None},
    "results": [
        {
            "id": "https://openalex.org/W2741809807",
            "doi": "https://doi.org/10.7717/peerj.4375",
            "title": "The state of <i>OA</i>: a large-scale analysis",
            "publication_date": "2018-02-13",
            "publication_year": 2018,
            "authorships": [
                {
                    "author_position": "first",
                    "author": {"id": "https://openalex.org/A1", "display_name": "Heather Piwowar"},
                    "institutions": [],
                },
                {
                    "author_position": "last",
                    "author": {"id": "https://openalex.org/A2", "display_name": "Jason Priem"},
                },
            ],
            "primary_location": {
                "is_oa": True,
                "landing_page_url": "https://doi.org/10.7717/peerj.4375",
                "pdf_url": "https://peerj.com/articles/4375.pdf",
                "source": {"id": "https://openalex.org/S1983995261", "display_name": "PeerJ"},
            },
            "best_oa_location": {"is_oa": True, "pdf_url": "https://peerj.com/articles/4375.pdf"},
            "open_access": {"is_oa": True, "oa_status": "gold", "oa_url": "https://peerj.com/4375"},
            "abstract_inverted_index": {
                "Despite": [0],
                "growing": [1],
                "interest": [2],
                "in": [3],
                "Open": [4],
                "Access,": [5],
                "despite": [6],
                "interest.": [7],
            },
        },
        {
            "id": "https://openalex.org/W2",
            "doi": None,
            "title": "Old",
            "publication_date": None,
            "publication_year": 1999,
            "authorships": [],
            "primary_location": None,
            "best_oa_location": None,
            "open_access": {"is_oa": False, "oa_url": None},
            "abstract_inverted_index": None,
        },
    ],
    "group_by": [],
}
