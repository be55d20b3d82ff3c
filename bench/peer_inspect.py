# mypy: disable-error-code="import-not-found"
"""Inspect AI at the same work; run by its own Python: ``peer_inspect.py URL CASES CONCURRENCY LOGS``.

One request a case, its call scored, its log written as Inspect writes it by default.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time


def main() -> None:
    url, cases, concurrency, logs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    os.environ |= {"LOOPBACK_API_KEY": "x", "LOOPBACK_BASE_URL": f"{url}/v1", "INSPECT_LOG_LEVEL": "warning"}
    from inspect_ai import Task  # noqa: PLC0415 — reads the environment when it is imported
    from inspect_ai import eval as run_eval  # noqa: PLC0415
    from inspect_ai.dataset import MemoryDataset, Sample  # noqa: PLC0415
    from inspect_ai.model import GenerateConfig, get_model  # noqa: PLC0415
    from inspect_ai.scorer import Score, accuracy, scorer  # noqa: PLC0415
    from inspect_ai.solver import generate, use_tools  # noqa: PLC0415
    from inspect_ai.tool import tool  # noqa: PLC0415

    @tool
    def get_weather():  # type: ignore[no-untyped-def]  # noqa: ANN202
        async def execute(city: str, unit: str = "C") -> str:
            """Get the weather for a city.

            Args:
                city: City name
                unit: C or F
            """
            return f"{city} {unit}"

        return execute

    @scorer(metrics=[accuracy()])
    def right_call():  # type: ignore[no-untyped-def]  # noqa: ANN202
        async def score(state, target):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            calls = state.output.message.tool_calls or []
            right = len(calls) == 1 and calls[0].function == "get_weather" and calls[0].arguments["city"] == target.text
            return Score(value="C" if right else "I")

        return score

    samples = [
        Sample(id=number + 1, input=f"What is the weather in City{number}? Use Celsius.", target=f"City{number}")
        for number in range(cases)
    ]
    task = Task(
        dataset=MemoryDataset(samples),
        solver=[use_tools(get_weather()), generate(tool_calls="none")],
        scorer=right_call(),
    )
    model = get_model("openai-api/loopback/loopback", config=GenerateConfig(max_connections=concurrency, temperature=0))
    before = resource.getrusage(resource.RUSAGE_SELF)
    begun = time.perf_counter()
    log = run_eval(task, model=model, max_samples=concurrency, display="none", log_dir=logs)[0]
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF)
    accuracy_found = log.results.scores[0].metrics["accuracy"].value if log.results else None
    if log.status != "success" or accuracy_found != 1:
        raise SystemExit(f"inspect: {log.status}, accuracy {accuracy_found}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = {
        "cases_a_second": round(cases / seconds, 1),
        "cpu_ms_a_case": round(cpu / cases * 1000, 3),
        "peak_mb": after.ru_maxrss // 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
