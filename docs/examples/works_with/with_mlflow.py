"""MLflow: parameters, the metrics of every step, and the model folder of a run."""

import json
from pathlib import Path

import mlflow

import tercet

run = tercet.train("team.toml", data=".", out="runs/team")

mlflow.set_tracking_uri("sqlite:///mlflow.db")  # or the address of a server
with mlflow.start_run(run_name=run.folder.name) as logged:
    recipe = tercet.Recipe.load(run.folder / "recipe.toml")
    mlflow.log_params({"encoder": recipe.encoder.name, "seed": recipe.seed})
    for line in Path(run.folder / "metrics.jsonl").read_text("utf-8").splitlines():
        step = json.loads(line)
        if "loss" in step:
            losses = {f"loss/{task}": value for task, value in step["loss"].items()}
            mlflow.log_metrics(losses | {"lr": step["lr"]}, step=step["step"])
    for task, modes in run.dev.items():
        for mode, metrics in modes.items():
            for metric, value in metrics.items():
                if value is not None:
                    mlflow.log_metric(f"dev/{task}/{mode}/{metric}", value)
    mlflow.log_artifacts(str(run.folder / "model"), artifact_path="model")

found = mlflow.get_run(logged.info.run_id)
print(found.data.params["encoder"], sorted(found.data.metrics))
