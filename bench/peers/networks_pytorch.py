"""The networks of examples/ in PyTorch, with their losses, optimizers and a synthetic batch."""
import dataclasses
import typing

import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass
class Work:
    network: nn.Module
    loss: typing.Callable
    optimizer: typing.Callable  # optimizer(fused)
    inputs: list
    targets: list
    clip: float = 0


def images(batch, channels, side):
    return [torch.rand(batch, channels, side, side) - 0.5], [torch.randint(0, 10, (batch,))]


def adam(network, **settings):
    return lambda fused: torch.optim.Adam(network.parameters(), fused=fused, **settings)


def mnist(batch):
    network = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                            nn.Linear(5408, 64), nn.ReLU(), nn.Linear(64, 10))
    return Work(network, nn.CrossEntropyLoss(), adam(network), *images(batch, 1, 28))


def cifar(batch):
    network = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5),
                            nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
                            nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))

    def optimizer(fused):
        return torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, fused=fused)

    return Work(network, nn.CrossEntropyLoss(), optimizer, *images(batch, 3, 32))


class Tickets(nn.Module):
    def __init__(self):
        super().__init__()
        self.title_words, self.body_words = nn.Embedding(10000, 64), nn.Embedding(10000, 64)
        self.title = nn.LSTM(64, 128, batch_first=True)
        self.body = nn.LSTM(64, 32, batch_first=True)
        self.priority, self.department = nn.Linear(172, 1), nn.Linear(172, 4)

    def forward(self, title, body, tags):
        _, (t, _) = self.title(self.title_words(title))
        _, (b, _) = self.body(self.body_words(body))
        x = torch.cat([t[0], b[0], tags], 1)
        return self.priority(x), self.department(x)


def tickets(batch):
    network = Tickets()

    def loss(outputs, priority, department):
        return (functional.binary_cross_entropy_with_logits(outputs[0], priority)
                + 0.2 * functional.cross_entropy(outputs[1], department))

    inputs = [torch.randint(1, 10000, (batch, 20)), torch.randint(1, 10000, (batch, 100)),
              torch.randint(0, 2, (batch, 12)).float()]
    targets = [torch.randint(0, 2, (batch, 1)).float(), torch.randint(0, 4, (batch,))]
    return Work(network, loss, adam(network, lr=2e-3), inputs, targets)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        batch, time, width = x.shape
        qkv = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x):
        x = x + self.attend(self.before(x))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Text(nn.Module):
    def __init__(self, width=128, blocks=4, heads=4, context=64):
        super().__init__()
        self.words = nn.Embedding(256, width)
        self.places = nn.Parameter(torch.randn(context, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, x):
        return self.out(self.norm(self.blocks(self.words(x) + self.places)))


def text(batch):
    network = Text()

    def loss(logits, targets):
        return functional.cross_entropy(logits.view(-1, 256), targets.view(-1))

    def optimizer(fused):
        return torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.01, fused=fused)

    window = torch.randint(0, 256, (batch, 65))
    return Work(network, loss, optimizer, [window[:, :-1].contiguous()],
                [window[:, 1:].contiguous()], clip=1)


def normalised(inputs, filters, size, stride):
    return nn.Sequential(nn.Conv2d(inputs, filters, size, stride, size // 2, bias=False),
                         nn.BatchNorm2d(filters))


class Residual(nn.Module):
    def __init__(self, inputs, filters):
        super().__init__()
        self.first = normalised(inputs, filters, 3, 2)
        self.second = normalised(filters, filters, 3, 1)
        self.way = normalised(inputs, filters, 1, 2)

    def forward(self, x):
        y = self.second(functional.relu(self.first(x)))
        return functional.relu(self.way(x) + y)


def resnet(batch):
    network = nn.Sequential(normalised(1, 16, 3, 1), nn.ReLU(), Residual(16, 16), Residual(16, 32),
                            Residual(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                            nn.Linear(64, 10))

    def optimizer(fused):
        return torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=0.01, fused=fused)

    return Work(network, nn.CrossEntropyLoss(), optimizer, *images(batch, 1, 28))


def make(name, batch):
    return {'mnist': mnist, 'cifar': cifar, 'tickets': tickets, 'text': text,
            'resnet': resnet}[name](batch)
