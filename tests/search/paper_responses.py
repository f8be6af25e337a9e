"""Answers in the forms of scholarly engines. No engine was asked: the addresses say where to compare them."""

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

# https://www.crossref.org/documentation/retrieve-metadata/rest-api
CROSSREF: dict[str, Any] = {
    "status": "ok",
    "message-type": "work-list",
    "message-version": "1.0.0",
    "message": {
        "total-results": 2,
        "items-per-page": 5,
        "items": [
            {
                "DOI": "10.1371/journal.pone.0000217",
                "URL": "https://doi.org/10.1371/journal.pone.0000217",
                "title": ["Sharing data"],
                "author": [
                    {"given": "Ana", "family": "Ruiz", "sequence": "first", "affiliation": []},
                    {"name": "The Arch Group", "sequence": "additional"},
                ],
                "issued": {"date-parts": [[2007, 3]]},
                "container-title": ["PLoS ONE"],
                "publisher": "Public Library of Science (PLoS)",
                "abstract": "<jats:title>Abstract</jats:title><jats:sec><jats:title>Background</jats:title>"
                "<jats:p>About 10<jats:sup>3</jats:sup> papers.</jats:p></jats:sec>",
                "license": [{"URL": "http://creativecommons.org/licenses/by/4.0/", "content-version": "vor"}],
                "link": [
                    {"URL": "https://plos.test/217.xml", "content-type": "application/xml"},
                    {"URL": "https://plos.test/217.pdf", "content-type": "application/pdf"},
                ],
            },
            {
                "DOI": "10.1016/x",
                "title": ["Closed"],
                "issued": {"date-parts": [[None]]},
                "publisher": "A Press",
                "license": [{"URL": "https://www.elsevier.com/tdm/userlicense/1.0/"}],
                "link": [{"URL": "https://closed.test/x.pdf", "content-type": "application/pdf"}],
            },
        ],
    },
}

# https://api.semanticscholar.org/api-docs/graph#tag/Paper-Data/operation/get_graph_paper_relevance_search
SEMANTIC_SCHOLAR: dict[str, Any] = {
    "total": 2,
    "offset": 0,
    "data": [
        {
            "paperId": "649def34",
            "externalIds": {"DOI": "10.18653/V1/2020.ACL-MAIN.447", "ACL": "2020.acl-main.447"},
            "url": "https://www.semanticscholar.org/paper/649def34",
            "title": "S2ORC",
            "abstract": "A large corpus.",
            "venue": "Annual Meeting of the ACL",
            "year": 2020,
            "publicationDate": "2020-07-01",
            "authors": [{"authorId": "1", "name": "Kyle Lo"}, {"authorId": None, "name": "Lucy Wang"}],
            "openAccessPdf": {"url": "https://acl.test/447.pdf", "status": "HYBRID"},
        },
        {
            "paperId": "b2",
            "externalIds": {"MAG": "1"},
            "url": "https://www.semanticscholar.org/paper/b2",
            "title": "Two",
            "abstract": None,
            "venue": "",
            "year": 1998,
            "publicationDate": None,
            "authors": [],
            "openAccessPdf": None,
        },
    ],
}

# https://www.ncbi.nlm.nih.gov/books/NBK25499/#chapter4.ESearch
PUBMED_NUMBERS: dict[str, Any] = {
    "header": {"type": "esearch", "version": "0.3"},
    "esearchresult": {
        "count": "2",
        "retmax": "2",
        "retstart": "0",
        "idlist": ["20002", "10001"],
        "translationset": [],
        "querytranslation": "asthma[All Fields]",
    },
}

# https://dtd.nlm.nih.gov/ncbi/pubmed/doc/out/250101/index.html; the records come by number, not by rank.
PUBMED_RECORDS = """<?xml version="1.0" ?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN"
 "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>
<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">10001</PMID>
<Article PubModel="Print"><Journal><JournalIssue CitedMedium="Print">
<PubDate><MedlineDate>1999 Nov-Dec</MedlineDate></PubDate></JournalIssue><Title>Old Letters</Title></Journal>
<ArticleTitle>Asthma, a letter.</ArticleTitle></Article></MedlineCitation>
<PubmedData><ArticleIdList><ArticleId IdType="pubmed">10001</ArticleId></ArticleIdList></PubmedData>
</PubmedArticle>
<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">20002</PMID>
<Article PubModel="Print-Electronic"><Journal><JournalIssue CitedMedium="Internet">
<PubDate><Year>2020</Year><Month>Apr</Month></PubDate></JournalIssue>
<Title>Journal of Asthma</Title></Journal>
<ArticleTitle>Effect of <i>X</i> on CO<sub>2</sub>.</ArticleTitle>
<Abstract><AbstractText Label="BACKGROUND" NlmCategory="BACKGROUND">
More than 10<sup>6</sup> people.</AbstractText>
<AbstractText Label="RESULTS" NlmCategory="RESULTS">Risk fell (p &lt; 0.05).</AbstractText></Abstract>
<AuthorList CompleteYN="Y"><Author ValidYN="Y"><LastName>Ito</LastName>
<ForeName>Kei</ForeName><Initials>K</Initials>
</Author><Author ValidYN="Y"><CollectiveName>Asthma Group</CollectiveName></Author></AuthorList>
<ArticleDate DateType="Electronic"><Year>2020</Year><Month>03</Month><Day>09</Day></ArticleDate></Article>
</MedlineCitation><PubmedData><ArticleIdList><ArticleId IdType="pubmed">20002</ArticleId>
<ArticleId IdType="pmc">PMC7000001</ArticleId><ArticleId IdType="doi">10.1080/asthma.1</ArticleId>
</ArticleIdList>
<ReferenceList><Reference><ArticleIdList><ArticleId IdType="doi">10.9999/other</ArticleId></ArticleIdList>
</Reference></ReferenceList></PubmedData></PubmedArticle>
</PubmedArticleSet>"""
