"""Regard's own training, as `regard train` runs it, on a run directory whose data are prepared."""

import json
import sys
from pathlib import Path
from typing import Any

from pace import Pace

from regard.runs.run import Run
from regard.training.loop import train
from regard.training.trainer import Trainer
from regard.training.view import View

settings = json.loads(sys.argv[1])
pace = Pace(settings["warmup"])
update = Trainer.update


def paced(self: Trainer, **options: Any) -> None:
    pace.tick(self.progress.tokens)
    update(self, **options)


Trainer.update = paced  # type: ignore[method-assign]
directory = Path(settings["run"])
train(Run.open(directory).config, directory, resume=True, view=View())
