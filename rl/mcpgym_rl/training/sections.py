"""The tables of a recipe: each field with its default, its bounds and what it means (see docs/training.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mcpgym_rl.new_model import ModelSize
from mcpgym_rl.sft import SftConfig


class Section(BaseModel):
    """A part of a recipe: unknown keys are refused, and each field's docstring says what it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _rest_as_it_is(cls, data: Any) -> Any:
        """A table within that is given in part changes this part of its default here."""
        if not isinstance(data, Mapping):
            return data
        filled = dict(data)
        for name, field in cls.model_fields.items():
            if isinstance(field.default, Section) and isinstance(data.get(name), Mapping):
                filled[name] = {**field.default.model_dump(exclude_unset=True), **data[name]}
        return filled


class ModelSection(Section):
    """The model to train: one that exists, or a new one."""

    path: str | None = None
    """A Hugging Face directory to start from; without it, a new model is made for the environment."""
    new: ModelSize = ModelSize()
    """The size of a new model."""
    lora_rank: int = Field(default=0, ge=0)
    """Train low-rank adapters of this rank on every linear layer (arXiv 2106.09685); 0 trains the weights."""
    lora_alpha: int = Field(default=32, gt=0)
    """The adapters' scale is this over their rank."""
    device: str = "cpu"
    """Where the model is trained and sampled: cpu, cuda, cuda:1."""

    @model_validator(mode="after")
    def _adapters_need_a_model(self) -> Self:
        if self.lora_rank and self.path is None:
            raise ValueError("lora_rank adapts a model that exists: give path, or leave lora_rank out")
        return self


class WarmUp(Section):
    """Supervised fine-tuning on rollouts of a teacher, played as they are needed, before reinforcement learning."""

    policy: str = "teacher:skill=0.95"
    """Who is imitated; any policy that ``mcpgym collect`` takes."""
    split: str = "train"
    """Whose tasks it plays."""
    sft: SftConfig = SftConfig()
    """How its rollouts are learnt, and how many."""


class Rewards(Section):
    """What a rollout is worth to the trainer. Without anything here it is the environment's own total."""

    game_outcome: dict[Literal["win", "draw", "loss", "unfinished"], float] = {}
    """For games: the worth of each end. ``unfinished`` is a game that the policy left or that ran into a limit."""
    components: dict[str, float] = {}
    """Weights of the environment's rewards by name, added to that."""


class LineGroups(Section):
    """How groups begin in lines that the last certificate knows."""

    turns_back: tuple[float, ...] = (1, 3, 2, 1)
    """The weights with which a group begins at the line's last turn, the one before it, and so on; turns before that
    are given. A line with fewer turns begins at its first."""
    temperature: float = Field(default=1.2, gt=0)
    """The temperature of that turn: the greedy choice there is known, so other ones must be tried."""
    hot_share: float = Field(default=1.0, ge=0, le=1)
    """In which share of these groups; the others have the run's own temperature from the first turn on."""
    temperature_step: float = Field(default=0.3, ge=0)
    """How much hotter for each certificate that the line has survived."""
    max_temperature: float = Field(default=2.2, gt=0)
    """And no hotter than this: too hot, and the form breaks."""
    perfect_share: float = Field(default=0.7, ge=0, le=1)
    """The share of groups whose opponent plays perfectly once the game leaves the line."""
    random_moves: tuple[float, float] = (0.0, 0.5)
    """How often the opponents of the other groups then move at random: uniform between these."""

    @model_validator(mode="after")
    def _weights(self) -> Self:
        if not self.turns_back or min(self.turns_back) < 0 or not sum(self.turns_back):
            raise ValueError(f"turns_back needs weights of 0 or more, one of them above 0; not {self.turns_back}")
        if not 0 <= self.random_moves[0] <= self.random_moves[1] <= 1:
            raise ValueError(f"random_moves needs two shares in order, not {self.random_moves}")
        return self


class Curriculum(Section):
    """Which episodes a batch is made of: ordinary tasks, and lines of play that the last certificate knows."""

    open_share: float = Field(default=0.4, ge=0, le=1)
    """The largest share of groups in open lines: those that end with a decision by which the last certificate shows a
    game to be given away, or with an invalid move, and those that were lost or left unfinished without one."""
    groups_per_open_line: float = Field(default=2.0, gt=0)
    """No more groups than this for each open line."""
    weak_share: float = Field(default=0.4, ge=0, le=1)
    """The share of groups that begin at decisions of it that cost wins, the costlier ones more often: they teach to
    punish weak play. The certificate says where to begin, never what to do there."""
    missed_win_weight: float = Field(default=3.0, gt=0)
    """How much more often than others of the same cost those decisions come at which a win could have been forced.
    Their opponent plays perfectly from there, so that missing it again is sure to show."""
    unsure_share: float = Field(default=0.0, ge=0, le=1)
    """The share of groups that begin at any decision of it, right or wrong, the more often the less sure the policy is
    there: what it does right only just is lost again, unless it comes back too."""
    open: LineGroups = LineGroups(turns_back=(5, 1))
    """How groups begin in open lines: mostly at that decision."""
    unsure: LineGroups = LineGroups(turns_back=(1,), hot_share=0.0, perfect_share=0.4, random_moves=(0.0, 1.0))
    """How they begin at decisions of which the policy is not sure: the last turn of such a line."""
    weak: LineGroups = LineGroups(
        turns_back=(4, 1),
        temperature=1.15,
        temperature_step=0.15,
        hot_share=0.5,
        perfect_share=0.0,
        random_moves=(0.6, 1.0),
    )
    """How they begin at weak decisions: the last turn of such a line."""

    @model_validator(mode="after")
    def _room(self) -> Self:
        shares = self.open_share + self.weak_share + self.unsure_share
        if shares > 1 + 1e-9:
            raise ValueError(f"open_share + weak_share + unsure_share is {shares:g}: more than there are")
        return self


class Guards(Section):
    """When a run stops, or goes back to its best state, with a message."""

    no_signal_batches: int = Field(default=10, gt=0)
    """Stop when so many batches in a row have no group whose rewards differ."""
    max_log_ratio: float = Field(default=0.02, gt=0)
    """Stop when sampler and trainer differ by more than this in a token's log-probability before any update."""
    max_invalid_share: float = Field(default=0.5, gt=0, le=1)
    """Go back when more than this share of calls is refused or malformed; counted once the share has been lower."""
    max_roll_backs: int = Field(default=8, ge=0)
    """Stop when it has gone back so often in a row without a better certificate."""


class Certify(Section):
    """The certificate as a guide and as the end of training. Only for environments with a finite game tree."""

    every: int = Field(default=3, gt=0)
    """After how many steps the averaged weights are certified."""
    start: int = Field(default=0, ge=0)
    """From which step on."""
    slack: float = Field(default=1.0, ge=0)
    """Go back when lost lines + 3 (unfinished lines + invalid moves) + 100 (optimum - win) is worse than the accepted
    state's by more than this."""
    alike: float = Field(default=0.0, ge=0)
    """The best state is, among those that lose no more lines than is allowed if there are any, the one whose cost, as
    above, is least; of states whose costs are no more than this above the least it is the last, which has been trained
    for longer."""
    back_off: float = Field(default=0.85, gt=0, le=1)
    """What the learning rate is multiplied with then."""
    lost_lines: int = Field(default=0, ge=0)
    """Training ends with at most so many lost lines, none unfinished,"""
    win: float = Field(default=0.93, ge=0, le=1)
    """and at least this exact win rate against uniformly random play."""


class VllmSection(Section):
    """A vLLM server that samples, in place of the trainer's own engine (see docs/vllm.md)."""

    url: str
    """Where it is: http://127.0.0.1:8000."""
    model: str | None = None
    """The name of the model there; None for the only one."""
    folder: str | None = None
    """Where adapters are written for it, a path that it sees as well; None for the run's own folder."""


class Rl(Section):
    """Reinforcement learning."""

    steps: int = Field(default=150, gt=0)
    """How many updates at most."""
    cpu_seconds: float | None = Field(default=None, gt=0)
    """Stop after so many seconds of CPU time in all, warm-up included."""
    groups: int = Field(default=32, gt=0)
    """Groups per batch, at least."""
    signal_groups: float = Field(default=0.0, ge=0)
    """How many groups whose rewards differ a batch should have: as fewer of them do, batches grow, so that the gradient
    does not become noise. 0 for batches that stay as they are."""
    max_groups: int = Field(default=64, gt=0)
    """How large batches may grow."""
    group_size: int = Field(default=8, gt=1)
    """Rollouts per group: the same task, the same seed."""
    split: str = "train"
    """Where ordinary tasks come from, one after the other."""
    loss: Literal["grpo", "cispo", "reinforce"] = "grpo"
    """See :mod:`mcpgym_rl.training.losses`."""
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """The lower bound of the ratio is 1 - this."""
    clip_high: float = Field(default=0.28, gt=0)
    """The upper bound of the ratio is 1 + this."""
    advantage: Literal["rollout", "turn"] = "turn"
    """One advantage for the whole rollout, or one for each turn against rollouts in the same state."""
    scale: Literal["none", "std"] = "none"
    """Whether a rollout's advantage is divided by the standard deviation of its group."""
    prior: float = Field(default=1.0, ge=0)
    """How much a turn's baseline leans on that of the turn before, in rollouts."""
    least_others: int = Field(default=0, ge=0)
    """A turn to which fewer of the group's other rollouts came has the advantage 0: against one or two its outcome says
    little about it. Turns that no group begins with are then hardly learnt, so the curriculum must begin in them."""
    updates: int = Field(default=1, gt=0)
    """Into how many minibatches a batch is cut, each an optimizer step of its own."""
    temperature: float = Field(default=1.0, gt=0)
    """Of sampling."""
    hot_min_p: float = Field(default=0.002, ge=0, lt=1)
    """In turns that the curriculum makes hotter, tokens less likely than this times the likeliest are not sampled. In
    all other turns everything is, or what is never sampled would never be unlearnt."""
    max_new_tokens: int = Field(default=64, gt=0)
    """Tokens per turn; a turn that is cut off ends the rollout."""
    learning_rate: float = Field(default=1e-3, gt=0)
    """The peak."""
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    """How it falls over the steps."""
    final_rate: float = Field(default=0.1, ge=0, le=1)
    """Where it ends, as a part of the peak, unless it is constant."""
    warm_up_steps: int = Field(default=0, ge=0)
    """Over how many steps the rate rises from 0."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Of AdamW."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Of AdamW."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    entropy: float = Field(default=0.01, ge=0)
    """The weight of the entropy bonus, per token; with a target, the largest it may have."""
    entropy_target: tuple[float, float] | None = None
    """Where the entropy of a batch is to be, in nats per token, in the first step and in the last; it is estimated as
    the mean of -log p over what was sampled at the run's temperature. The bonus has its full weight where a batch has
    half of it or less, none where it has all of it, and in between a part."""
    entropy_threshold: float = Field(default=0.0, ge=0)
    """Tokens of no more entropy than this, in nats, get no bonus: where the form leaves no choice, none is wanted. The
    few tokens above it are those at which a rollout's course is chosen (arXiv 2506.01939)."""
    form: float = Field(default=0.0, ge=0)
    """The weight of a penalty on the entropy of the tokens up to that threshold, which must be given: where there is
    next to no choice, none comes up while the others are learnt. It holds the form at rates that would break it."""
    kl: float = Field(default=0.0, ge=0)
    """The weight of the KL term that holds the policy to the one that this stage begins with, per token."""
    average: float = Field(default=0.9, ge=0, lt=1)
    """The decay of the averaged weights, which are certified and kept; 0 for the trained ones themselves."""
    train_without_signal: bool = False
    """Whether tokens without an advantage are trained on too (their entropy, form and KL terms)."""
    overlap: bool = False
    """Sample the next batch while this one is learnt from: its policy is one update old."""
    micro_batch_tokens: int = Field(default=16_384, gt=0)
    """Gradients are accumulated over parts of at most so many places."""
    vllm: VllmSection | None = None
    """Sample with vLLM, which takes the adapters in before each batch; only with model.lora_rank."""
    rewards: Rewards = Rewards()
    """What a rollout is worth."""
    curriculum: Curriculum = Curriculum()
    """Which episodes are played."""
    guards: Guards = Guards()
    """When to stop or go back."""
    certify: Certify | None = Certify()
    """How it is certified, where the environment has a finite game tree; ``certify = false`` for not at all."""
    checkpoint_every: int = Field(default=5, gt=0)
    """Steps between checkpoints."""
    further: bool = False
    """Whether this stage comes after one that reached its certificate too, to go beyond it. What it begins with counts:
    its best state is that, or a better one, or one that is ``certify.alike``."""

    @model_validator(mode="after")
    def _it_learns_something(self) -> Self:
        if self.advantage == "turn" and self.least_others >= self.group_size:
            raise ValueError(
                f"a turn has {self.group_size - 1} others at most: least_others must be less than group_size"
            )
        if self.form and not self.entropy_threshold:
            raise ValueError("form holds tokens of no more entropy than entropy_threshold: give that too")
        if self.further and (self.certify is None or self.certify.start):
            raise ValueError("further keeps what was reached: it needs certify, from the first step on")
        return self

    @field_validator("certify", mode="before")
    @classmethod
    def _no_certificate(cls, value: Any) -> Any:
        return None if value is False else value  # TOML has no null
