"""The loss of connectionist temporal classification, which exporters refuse, in plain operations.
The method is the forward variable of Graves et al. (2006), in logarithms, frame by frame."""

import torch

F = torch.nn.functional
NEVER = -1e30  # for the logarithm of 0: gradients of infinities are not numbers


def padded(values, mask):
    """The values of each row that the mask selects, from the left on: [n, s] as both are."""
    n, s = values.shape
    to = torch.where(mask, mask.long().cumsum(1) - 1, s)
    return values.new_zeros((n, s + 1)).scatter(1, to, values)[:, :s]


def _cut(targets, lengths, longest):
    """Rows out of targets that follow one another."""
    at = (lengths.cumsum(0) - lengths)[:, None] + torch.arange(longest, device=targets.device)
    return targets[at.clamp(max=len(targets) - 1)]


def loss(p, y, frames, lengths, blank=0, reduction="mean", zero_infinity=False):
    """F.ctc_loss; None if there is nothing to write."""
    if p.ndim == 2:
        value = loss(p[:, None], y.reshape(1, -1), frames, lengths, blank, "none", zero_infinity)
        if value is None or reduction == "none":
            return value if value is None else value[0]
        return value[0] / _tensor(lengths, y).clamp(min=1)[0] if reduction == "mean" else value[0]
    if not y.numel():
        return None
    longest = len(y) if isinstance(lengths, torch.Tensor) else max(lengths)
    frames, lengths = _tensor(frames, y), _tensor(lengths, y)
    y = (_cut(y, lengths, longest) if y.ndim == 1 else y).long()
    t, n, s = int(p.shape[0]), int(p.shape[1]), int(y.shape[1])
    y = torch.where(torch.arange(s, device=y.device) < lengths[:, None], y, blank)
    between = torch.full_like(y, blank)
    states = torch.stack([between, y], 2).flatten(1)
    states = torch.cat([states, between[:, :1]], 1)
    emitted = p.gather(2, states.expand(t, n, 2 * s + 1)).unbind()
    never = torch.full((n, 2), NEVER, dtype=p.dtype, device=y.device)
    skips = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    skips = torch.cat([never, torch.where(skips, 0.0, NEVER).to(p.dtype)], 1)
    goes_on = (torch.arange(t, device=y.device)[:, None] < frames)[..., None].unbind()
    start = torch.arange(2 * s + 1, device=y.device) < 2
    a = emitted[0] + torch.where(start, 0.0, NEVER).to(p.dtype)
    for i in range(1, t):
        before = torch.cat([never, a], 1)
        ways = torch.stack([a, before[:, 1:-1], before[:, :-2] + skips])
        a = torch.where(goes_on[i], ways.logsumexp(0) + emitted[i], a)
    last = a.gather(1, 2 * lengths[:, None])
    label = a.gather(1, (2 * lengths[:, None] - 1).clamp(min=0))
    label = torch.where(lengths[:, None] > 0, label, NEVER)
    value = -torch.cat([last, label], 1).logsumexp(1)
    value = torch.where(value < -NEVER / 2, value, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        return (value / lengths.clamp(min=1)).mean()
    return value.sum() if reduction == "sum" else value


def _tensor(lengths, y):
    return torch.as_tensor(lengths, device=y.device).long().reshape(-1)
