"""Lightning itself: automatic optimization with a closure or a callback, accumulation, manual under DDP."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import evenly
from evenly.errors import UsageError
from evenly.optim import SharpnessAware

# Lightning imports torchmetrics, which imports torchvision, whose operators may not fit the torch at hand.
runpy.run_path(str(Path(__file__).parents[1] / "numerics" / "torchvision_guard.py"))["torchvision"]()
lightning = pytest.importorskip("pytorch_lightning")
pytestmark = pytest.mark.filterwarnings("ignore")  # What Lightning remarks on is not ours.

RULES = {"sam": evenly.SAM, "asam": evenly.ASAM, "lsam": evenly.LSAM, "gsam": evenly.GSAM}


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def batches() -> list[tuple[Tensor, Tensor]]:
    numbers = torch.Generator().manual_seed(1)
    return [(torch.randn(6, 4, generator=numbers), torch.randint(3, (6,), generator=numbers)) for _ in range(5)]


def quiet(folder: Path, **options) -> dict:
    return {
        "accelerator": "cpu",
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
        "default_root_dir": folder,
        **options,
    }


class Module(lightning.LightningModule):
    """Nothing but a network, a loss and the optimizer face."""

    def __init__(self, rule) -> None:
        super().__init__()
        self.net, self.rule = network(), rule

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def configure_optimizers(self) -> dict:
        optimizer = SharpnessAware(
            torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9), self.rule(self.net, rho=0.1)
        )
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_automatic_optimization_equals_a_loop_of_ones_own_bit_for_bit(rule, tmp_path: Path) -> None:
    x, y = (torch.cat(parts) for parts in zip(*batches(), strict=True))
    module = Module(rule)
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, DataLoader(TensorDataset(x, y), batch_size=6))

    net = network()
    sam, optimizer = rule(net, rho=0.1), torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    for _ in range(2):
        for x_B, y_B in batches():
            optimizer.zero_grad()
            sam.backward(lambda x=x_B, y=y_B: F.cross_entropy(net(x), y))
            optimizer.step()
            scheduler.step()
    assert trainer.global_step == 10
    assert all(
        torch.equal(a, b) for a, b in zip(module.net.state_dict().values(), net.state_dict().values(), strict=True)
    )


class Plain(lightning.LightningModule):
    """A module that knows nothing of SAM, and logs."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.logged = network(), []

    def training_step(self, batch: list[Tensor], _: int) -> dict:
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        self.logged.append(loss.item())
        return {"loss": loss}

    def configure_optimizers(self):
        return torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)


ALL = ["SAM", "ASAM", "GSAM", "LookSAM", "FriendlySAM", "MSAM", "LSAM"]


def by_hand(
    name: str, *, micro: int, epochs: int = 2, autocast: bool = False, clip: float | None = 0.5
) -> nn.Sequential:
    """The same training in a loop of one's own, the loss divided as Lightning does."""
    net = network()
    sam, optimizer = getattr(evenly, name)(net, rho=0.1), torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        for number, (x, y) in enumerate(batches()[:4], 1):

            def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
                with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                    return F.cross_entropy(net(x), y) / micro

            sam.backward(closure)
            if number % micro == 0:
                if clip is not None:
                    nn.utils.clip_grad_norm_(net.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
    return net


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("micro", "precision"), [(1, "32-true"), (2, "bf16-mixed")])
def test_the_callback_equals_a_loop_of_ones_own(name: str, micro: int, precision: str, tmp_path: Path) -> None:
    from evenly.integrations.lightning import SharpnessAwareTraining

    x, y = (torch.cat(parts) for parts in zip(*batches()[:4], strict=True))
    module = Plain()
    callback = SharpnessAwareTraining(getattr(evenly, name), rho=0.1)
    trainer = lightning.Trainer(
        max_epochs=2, accumulate_grad_batches=micro, gradient_clip_val=0.5, precision=precision, callbacks=[callback],
        **quiet(tmp_path),
    )  # fmt: skip
    trainer.fit(module, DataLoader(TensorDataset(x, y), batch_size=6))
    assert callback.sam.num_steps == trainer.global_step == 8 // micro
    assert "training_step" not in vars(module)
    net = by_hand(name, micro=micro, autocast=precision == "bf16-mixed")
    for a, b in zip(module.net.state_dict().values(), net.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_a_resumed_run_goes_on_bit_for_bit_and_logs_the_loss_at_the_weights(tmp_path: Path) -> None:
    from evenly.integrations.lightning import SharpnessAwareTraining

    x, y = (torch.cat(parts) for parts in zip(*batches()[:4], strict=True))
    loader = DataLoader(TensorDataset(x, y), batch_size=6)

    def trainer(epochs: int) -> lightning.Trainer:
        callback = SharpnessAwareTraining(evenly.FriendlySAM, rho=0.1)
        return lightning.Trainer(max_epochs=epochs, callbacks=[callback], **quiet(tmp_path))

    straight = Plain()
    whole = trainer(2)
    whole.fit(straight, loader)
    assert whole.callbacks[0].sam.num_steps == 8
    assert float(whole.callback_metrics["loss"]) == pytest.approx(straight.logged[-2]), "the displaced loss was logged"
    first, second = Plain(), Plain()
    stopped = trainer(1)
    stopped.fit(first, loader)
    stopped.save_checkpoint(tmp_path / "last.ckpt")
    trainer(2).fit(second, loader, ckpt_path=tmp_path / "last.ckpt")
    for a, b in zip(straight.net.state_dict().values(), second.net.state_dict().values(), strict=True):
        assert torch.equal(a, b)


class Failing(Plain):
    """Fails in the third step, as often as it is told to."""

    failures = 1

    def training_step(self, batch: list[Tensor], index: int) -> dict:
        if index == 2 and self.failures:
            self.failures -= 1
            raise RuntimeError("no memory")
        return super().training_step(batch, index)


@pytest.mark.parametrize("told", [True, False], ids=["on_exception", "killed"])
def test_a_fit_after_one_that_failed_displaces_once(told: bool, tmp_path: Path, monkeypatch) -> None:
    from evenly.integrations.lightning import SharpnessAwareTraining

    x, y = (torch.cat(parts) for parts in zip(*batches()[:4], strict=True))
    loader = DataLoader(TensorDataset(x, y), batch_size=6)
    if not told:
        monkeypatch.setattr(SharpnessAwareTraining, "on_exception", lightning.Callback.on_exception)
    module = Failing()
    with pytest.raises(RuntimeError, match="no memory"):
        lightning.Trainer(max_epochs=2, callbacks=[SharpnessAwareTraining(evenly.SAM, rho=0.1)], **quiet(tmp_path)).fit(
            module, loader
        )
    assert ("training_step" in vars(module)) is not told
    module.net, module.logged = network(), []
    callback = SharpnessAwareTraining(evenly.SAM, rho=0.1)
    lightning.Trainer(max_epochs=2, callbacks=[callback], **quiet(tmp_path)).fit(module, loader)
    assert len(module.logged) == 2 * 8
    assert "training_step" not in vars(module)
    for a, b in zip(
        module.net.state_dict().values(), by_hand("SAM", micro=1, clip=None).state_dict().values(), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_a_training_step_of_the_instance_is_given_back_and_a_checkpoint_is_of_its_own_fit(tmp_path: Path) -> None:
    from evenly.integrations.lightning import SharpnessAwareTraining

    x, y = (torch.cat(parts) for parts in zip(*batches()[:4], strict=True))
    loader = DataLoader(TensorDataset(x, y), batch_size=6)
    module, callback = Plain(), SharpnessAwareTraining(evenly.FriendlySAM, rho=0.1)

    def own(batch: list[Tensor], index: int) -> dict:
        return Plain.training_step(module, batch, index)

    module.training_step = own
    first = lightning.Trainer(max_epochs=1, callbacks=[callback], **quiet(tmp_path))
    first.fit(module, loader)
    assert module.training_step is own
    first.save_checkpoint(tmp_path / "last.ckpt")
    second = lightning.Trainer(max_epochs=2, callbacks=[callback], **quiet(tmp_path))
    second.fit(Plain(), loader, ckpt_path=tmp_path / "last.ckpt")
    assert callback.sam.num_steps == 8
    lightning.Trainer(max_epochs=1, callbacks=[callback], **quiet(tmp_path)).fit(Plain(), loader)
    assert callback.sam.num_steps == 4


class Manual(Plain):
    """Manual optimization: one line more than without SAM."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.automatic_optimization = name, False

    def training_step(self, batch: list[Tensor], _: int) -> None:
        x, y = batch
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.sam.backward(lambda: F.cross_entropy(self.net(x), y))
        optimizer.step()

    def configure_optimizers(self):
        self.sam = getattr(evenly, self.name)(self, rho=0.1, backward=self.manual_backward)
        return super().configure_optimizers()


def two_processes(folder: Path) -> None:
    """What each of two processes does: every rule, manual and automatic, on its own half of the data."""
    from evenly.integrations.lightning import SharpnessAwareTraining

    found = {}
    rank = int(os.environ["RANK"])
    x, y = (torch.cat(parts) for parts in zip(*batches()[:4], strict=True))
    for name in ALL:
        for manual in (True, False):
            torch.manual_seed(0)
            module = Manual(name) if manual else Plain()
            module.net[1] = nn.Identity()  # Statistics are a rank's own without SyncBatchNorm.
            callbacks = [] if manual else [SharpnessAwareTraining(getattr(evenly, name), rho=0.1)]
            trainer = lightning.Trainer(
                strategy="ddp", devices=2, max_epochs=2, callbacks=callbacks, use_distributed_sampler=False,
                **quiet(folder),
            )  # fmt: skip
            halves = [(x[i : i + 12][6 * rank : 6 * rank + 6], y[i : i + 12][6 * rank : 6 * rank + 6]) for i in (0, 12)]
            own = TensorDataset(*(torch.cat(each) for each in zip(*halves, strict=True)))
            trainer.fit(module, DataLoader(own, batch_size=6))
            found[f"{name} {manual}"] = torch.cat([p.detach().flatten() for p in module.net.parameters()])
    torch.save(found, folder / f"{rank}.pt")


def test_replicas_stay_bit_equal_under_ddp_and_equal_one_process_with_groups(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0"]
    command[-2:] = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    done = subprocess.run([*command, __file__, str(tmp_path)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    one, other = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    x, y = (torch.cat(parts) for parts in zip(*batches()[:4], strict=True))
    for key, weights in one.items():
        assert torch.equal(weights, other[key]), key
        net = network()
        net[1] = nn.Identity()
        sam = getattr(evenly, key.split()[0])(net, rho=0.1, m=6)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            for i in (0, 12):
                sam.backward(lambda x, y, net=net: F.cross_entropy(net(x), y), x[i : i + 12], y[i : i + 12])
                optimizer.step()
                optimizer.zero_grad()
        alone = torch.cat([p.detach().flatten() for p in net.parameters()])
        torch.testing.assert_close(weights, alone, rtol=1e-5, atol=1e-6, msg=lambda m, key=key: f"{key}: {m}")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    two_processes(Path(sys.argv[1]))


@pytest.mark.parametrize("rule", [lambda: "sam", lambda: evenly.SAM(network())], ids=["a name", "a rule"])
def test_the_callback_asks_for_the_class_of_a_rule(rule) -> None:
    from evenly.integrations.lightning import SharpnessAwareTraining

    with pytest.raises(UsageError, match=r"was given a (str|SAM): give the class and its options"):
        SharpnessAwareTraining(rule())


class Lossless(Plain):
    def training_step(self, batch: list[Tensor], index: int) -> dict:
        return {"error": super().training_step(batch, index)}


def test_a_training_step_without_a_loss_is_refused_by_name(tmp_path: Path) -> None:
    from evenly.integrations.lightning import SharpnessAwareTraining

    x, y = (torch.cat(parts) for parts in zip(*batches()[:4], strict=True))
    trainer = lightning.Trainer(max_epochs=1, callbacks=[SharpnessAwareTraining(evenly.SAM)], **quiet(tmp_path))
    with pytest.raises(UsageError, match="returned a dict of error: SAM needs the loss"):
        trainer.fit(Lossless(), DataLoader(TensorDataset(x, y), batch_size=6))
