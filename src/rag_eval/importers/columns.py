"""The usual names of columns and fields of tables, and the maps that they suggest."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from itertools import takewhile

_NAMES = """
qid: qid question_id query_id case_id example_id dataset_item_id test_id item_id sample_id custom_id frage_id fragen_id id
question: question query user_input user_query user_question user_message question_text q input inputs prompt messages conversations request message request_body input_record example_question reference_question questions queries frage pregunta domanda question_posée pergunta вопрос 질문 vraag pytanie soru 質問 问题 問題
answer: pred_answer pred_response predicted_answer predicted_answers response generated_answer model_answer actual_output prediction model_response predicted_response llm_answer llm_response bot_answer bot_response agent_answer agent_response assistant_answer assistant_response chatbot_answer chatbot_response ai_answer ai_response rag_answer rag_response system_answer system_response actual_answer actual_response modellantwort systemantwort generierte_antwort réponse_générée respuesta_generada risposta_generata resposta_gerada сгенерированный_ответ ответ_модели 생성된_답변 모델_답변 生成された回答 生成回答 模型回答 generated_text generated_response generated model_output generation completion output output_text answer final_answer outputs reply answer_json choices result response_body generated_texts assistant antwort réponse respuesta risposta resposta ответ 답변 응답 antwoord odpowiedź cevap yanıt 回答 答案 a
citations: citations cited cited_ids citation_ids cited_sources
chunks: reranked_documents reranked_chunks reranked_contexts reranked_docs reranked chunks documents retrieved_contexts retrieved_context retrieved_chunks retrieved_documents retrieved_docs retrieved_passages retrieved_texts retrieved pred_context pred_contexts llm_context rag_contexts retrieval_contents source_documents source_nodes context_chunks retrieval_context contexts context docs_retrieved passages passage chunk_text passage_text document source_docs docs sources references retriever_resources retrieval_results ctxs search_results retrieved_contents kontext kontexte contexte contextes contexte_récupéré contexto contextos contexto_recuperado contesto contesti contesto_recuperato abgerufener_kontext gefundene_textstellen textstellen fundstellen контекст найденный_контекст 컨텍스트 문맥 kontekst bağlam コンテキスト 検索結果 上下文 检索内容
chunk_ids: retrieved_ids retrieved_context_ids retrieved_chunk_ids retrieved_doc_ids retrieved_document_ids chunk_ids document_ids doc_ids passage_ids passage_id chunk_id doc_id document_id
chunk_scores: chunk_scores retrieve_scores retrieval_scores relevance_scores similarity_scores scores retrieval_score relevance_score similarity_score similarity score
rank: rank rank_position position
run: run query_run model provider experiment
error: error error_message exception
latency_ms: latency_ms latencyms duration_ms response_time_ms elapsed_ms total_time_ms delay_ms
latency_s: latency latency_s latency_sec latency_seconds duration response_time response_time_s provider_response_latency elapsed elapsed_time time_taken execution_time
input_tokens: input_tokens prompt_tokens prompt_token_count tokens_in message_tokens
output_tokens: output_tokens completion_tokens completion_token_count tokens_out answer_tokens
cost_usd: cost_usd cost total_cost response_cost spend
conversation: conversation_id session_id thread_id chat_id
turn: turn turn_id turn_index turn_number
time: timestamp ts created_at start_time
"""  # noqa: E501
_GOLD_NAMES = """
qid: qid question_id query_id case_id example_id test_id item_id sample_id frage_id fragen_id id
question: question query user_input user_query user_question user_message question_text q input inputs prompt messages request example_question reference_question questions queries frage pregunta domanda question_posée pergunta вопрос 질문 vraag pytanie soru 質問 问题 問題
answerable: answerable is_answerable beantwortbar unanswerable is_unanswerable is_impossible
expected_answer: expected_answer expected expected_response reference reference_answer reference_output reference_outputs ground_truth ground_truth_answer ground_truths groundtruth gt_answer gold_answer gold_answers golden_answer golden_answers correct_answer best_answer correct_answers reference_answers truth expected_output ideal_answer ideal_response ideal target targets gold gt reference_response true_answer reference_responses generation_gt ground_truth_answers example_answer example_response erwartete_antwort referenzantwort musterantwort musterlösung sollantwort richtige_antwort réponse_attendue réponse_de_référence bonne_réponse respuesta_esperada respuesta_correcta respuesta_de_referencia risposta_attesa risposta_corretta resposta_esperada resposta_correta ожидаемый_ответ эталонный_ответ правильный_ответ 정답 예상_답변 기대_답변 verwacht_antwoord oczekiwana_odpowiedź beklenen_cevap 正解 期待される回答 期待回答 参考答案 标准答案 answer output outputs answers antwort réponse respuesta risposta resposta ответ 답변 antwoord odpowiedź cevap 回答 答案 a
gold_claim_substr: gold_claim_substr must_contain keywords key_facts
gold_citations: gold_citations retrieval_gt gold_ids expected_ids expected_docs gt_docs gold_docs gold_doc_ids gold_chunk_ids relevant_ids relevant_doc_ids relevant_chunk_ids relevant_docs expected_sources expected_doc_ids expected_chunk_ids reference_context_ids citations sources source chunk_ids doc_ids passage_id doc_id chunk_id document_id
relevant_docs: expected_document expected_documents expected_file expected_files source_document source_file
contexts: reference_contexts reference_context gold_contexts gold_context expected_contexts expected_context expected_retrieved_context expected_chunks ground_truth_contexts ground_truth_context relevant_passages evidence contexts context passages passage
difficulty: difficulty
category: category
tags: tags
"""  # noqa: E501
_OF_ANSWERS = "citations sources source source_document source_file chunk_ids doc_ids passage_id doc_id chunk_id document_id contexts context passages passage".split()  # noqa: E501
"""Names that in a file with answers are of the retrieval, not of the gold set."""


def _fields(table: str) -> dict[str, list[str]]:
    pairs = (line.split(":") for line in table.strip().splitlines())
    return {field: _without_accents(names).split() for field, names in pairs}


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


FORMS = {"table": _fields(_NAMES), "table-gold": _fields(_GOLD_NAMES)}
"""The fields of a map for each format, and the names by which ``--suggest-map`` finds each."""
PREDICTED = tuple(takewhile("answer".__ne__, FORMS["table"]["answer"]))
"""Names of answers of a system: next to one, ``answer`` is the reference."""
_NO_WORD, _CAMEL = re.compile(r"[^\w.]+"), re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NEEDED = {"table": (("answer", "error"), ("question", "qid")), "table-gold": (("question",),)}
QUANTITIES = ("latency_ms", "latency_s", "input_tokens", "output_tokens", "cost_usd")
_OPERATIONS = ("error", *QUANTITIES, "conversation", "turn", "time")
_REFERENCES = ("reference", "reference_outputs", "reference_output", "expected", "expected_output", "ground_truth")
_LABELS = {"expected_answer", "gold_citations", "relevant_docs", "gold_claim_substr", "answerable"}


def suggested(names: list[str], form: str) -> dict[str, str]:
    """Return a first map from the names of a header or of a record's keys: only recognised fields.

    Of a name with dots, such as input.question, the whole counts first, then its last part; of input.value the first.
    """
    words = {name: _without_accents(_CAMEL.sub("_", name).casefold()) for name in names}
    plain = {name: _NO_WORD.sub("_", text).strip("_") for name, text in words.items()}
    spelled = {text: name for name, text in reversed(plain.items())}
    for name, text in plain.items():
        begin, _, last = text.rpartition(".")
        spelled.setdefault(begin if last in ("value", "content", "text") or begin in _REFERENCES else last, name)
    known: dict[str, str] = {}
    of_traces = suggested(names, "table") if form == "table-gold" else {}
    answered = of_traces.get("answer")
    for field, alternatives in FORMS[form].items():
        free = [spelled[name] for name in alternatives if spelled.get(name) not in (None, *known.values())]
        has_both = answered is not None and known.get("expected_answer", answered) != answered
        if field in ("gold_citations", "relevant_docs", "contexts") and has_both:
            free = [name for name in free if plain[name].rpartition(".")[2] not in _OF_ANSWERS]
        are_of_chunks = "chunk_ids" in known or ("chunks" in known and free and plain[free[0]] != "score")
        if free and (field != "chunk_scores" or are_of_chunks):
            known[field] = free[0]
    is_verdict = "chunks" not in known and plain.get(known.get("question", "")) != "query"  # as LangChain calls it
    if plain.get(known.get("answer", "")) == "result" and is_verdict:
        del known["answer"]
    answer = "answer" if form == "table" else "expected_answer"
    response = spelled.get("response", "")
    if form == "table-gold" and plain.get(answered or "") in PREDICTED and response not in ("", answered):
        known.setdefault(answer, response)
    retrieved = " ".join({of_traces.get("chunks", ""), of_traces.get("chunk_ids", "")} - {*known.values()})
    if (
        form == "table-gold"
        and "retriev" in retrieved.casefold()
        and answered == known.get(answer)
        and len(known.keys() & _LABELS) > 1
    ):
        del known[answer]  # of the system: a log with labels
    has_no_answer = known.keys().isdisjoint({answer} | _LABELS)
    if plain.get(known.get("question", "")) in ("messages", "conversations") and has_no_answer:
        known[answer] = known["question"]  # a conversation has both
    return known


def is_sufficient(fields: Mapping[str, str], form: str) -> bool:
    """Return whether a suggested map has the fields without which a file of the form would be empty."""
    is_retrieval = any("retriev" in fields.get(name, "").casefold() for name in ("chunk_ids", "chunks"))
    given = {*fields, *(["answer"] if is_retrieval else [])}
    has_needed = all(any(field in given for field in alternatives) for alternatives in _NEEDED[form])
    return has_needed and (form == "table" or any(field in fields for field in _LABELS))


@lru_cache(maxsize=256)  # the rows of a file have few sets of names
def operations(*names: str) -> dict[str, str]:
    """Return the names of latency, tokens, cost, error and conversation in a sample of any tool, by their fields."""
    return {field: name for field, name in suggested(list(names), "table").items() if field in _OPERATIONS}


@lru_cache(maxsize=256)
def are_of_record(*names: str) -> bool:
    """Return whether the names of an object are sufficient for a form."""
    return any(is_sufficient(suggested(list(names), form), form) for form in FORMS)
