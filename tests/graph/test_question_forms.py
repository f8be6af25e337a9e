"""Questions about a plan and wishes to change it are told apart by their form, in several languages."""

import pytest

from maniple.graph.question_forms import has_question_form, is_question

QUESTIONS = (
    "Is deleting undoable?",
    "What does step 2 do",
    "Why is the browser needed?",
    "How long will this take?",
    "Will this cost anything?",
    "I wonder whether the files can be restored",
    "Can the deletion be undone?",
    "Could you explain why there are two steps?",
    "Kann man das rückgängig machen?",
    "Warum braucht ihr den Browser",
    "Ich frage mich, ob das sicher ist.",
    "Est-ce que cela supprime mes fichiers ?",
    "Pourquoi deux étapes",
    "¿Se puede deshacer?",
    "Por qué hace falta el navegador",
    "删除可以撤销吗",
    "为什么需要浏览器？",
    "削除は元に戻せますか",
    "Почему нужно два шага",
    "Можно ли отменить удаление?",
)
WISHES = (
    "Use only official sources.",
    "Add a step that checks the numbers",
    "Could you add a chart?",
    "Can you please write it in French?",
    "How about three steps instead of five?",
    "Please shorten the plan",
    "Do it without the browser",
    "Make the report shorter, and say what was not found.",
    "Lass Schritt 2 weg",
    "Kannst du bitte noch Zürich dazunehmen?",
    "Bitte nur amtliche Quellen",
    "Ajoute un graphique",
    "Pourriez-vous ajouter une étape ?",
    "Añade un gráfico",
    "¿Puedes añadir un gráfico, por favor?",
    "请用中文写",
    "能不能加一个图表？",
    "グラフを追加してください",
    "Убери второй шаг",
    "Не могли бы вы добавить график?",
)
assert len(QUESTIONS) == len(WISHES) == 20


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_question_is_recognised(text: str) -> None:
    assert is_question(text)
    assert has_question_form(text)


@pytest.mark.parametrize("text", WISHES)
def test_a_wish_is_no_question(text: str) -> None:
    assert not is_question(text)


@pytest.mark.parametrize("text", ["Could you add a chart?", "能不能加一个图表？"])
def test_a_wish_in_the_form_of_a_question_has_its_form(text: str) -> None:
    assert has_question_form(text)
