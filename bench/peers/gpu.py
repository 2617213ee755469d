"""Training steps and sampling on a GPU, by PyTorch: gpu.py WORK [--batch N].

mnist, cifar and tickets, the networks of examples/ (networks_pytorch.py), in f32, whole steps
captured as a CUDA graph, optimizers fused. gpt: GPT-2 124M on 1024 tokens, bf16 with f32 masters,
torch.compile, fused AdamW, SDPA. sample: the same network, one sequence, token after token, static
cache of 1024 keys, compiled and captured. resnet50: bf16 by autocast, channels-last, compiled.
products: of bf16 matrices by cuBLAS. One JSON line a result; medians of groups of steps, each group
to the end of its last step."""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

GROUPS, GROUP_SECONDS = 15, 0.1


def report(work, value, unit):
    print(json.dumps({'bench': 'gpu', 'work': work, 'peer': 'pytorch', 'value': value, 'unit': unit,
                      'version': torch.__version__}), flush=True)


def seconds_of(step):
    """Median over groups of steps."""
    def group(count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / count
    for _ in range(5):
        step()
    count = max(1, int(GROUP_SECONDS / group(3)))
    return statistics.median(group(count) for _ in range(GROUPS))


def captured(step):
    """The step as a CUDA graph, after some on a stream of their own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def small(name, batch):
    import networks_pytorch
    work = networks_pytorch.make(name, batch)
    network = work.network.cuda()
    inputs, targets = [x.cuda() for x in work.inputs], [x.cuda() for x in work.targets]
    optimizer = work.optimizer(True)
    for group in optimizer.param_groups:
        if 'capturable' in group:
            group['capturable'] = True

    def step():
        optimizer.zero_grad(set_to_none=True)
        work.loss(network(*inputs), *targets).backward()
        optimizer.step()

    report(f'{name}, batch {batch}, f32, a CUDA graph', 1 / seconds_of(captured(step)), 'steps/s')


# ---- GPT-2 ----

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x, cache=None, position=None, mask=None):
        batch, rows, width = x.shape
        q, k, v = (y.view(batch, rows, self.heads, -1).transpose(1, 2)
                   for y in self.qkv(x).split(width, 2))
        if cache is None:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            cache[0].index_copy_(2, position, k)
            cache[1].index_copy_(2, position, v)
            y = functional.scaled_dot_product_attention(q, cache[0], cache[1], attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(batch, rows, width))

    def forward(self, x, *given):
        x = x + self.attend(self.before(x), *given)
        return x + self.down(functional.gelu(self.up(self.between(x)), approximate='tanh'))


class GPT(nn.Module):
    def __init__(self, words, context=1024, width=768, blocks=12, heads=12):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.words.weight)

    def next(self, token, position, caches, mask):
        x = self.words(token) + self.places(position)
        row = mask[position][:, None, None]
        for block, cache in zip(self.blocks, caches):
            x = block(x, cache, position, row)
        return functional.linear(self.norm(x), self.words.weight)


def gpt(batch, words):
    torch.set_float32_matmul_precision('high')
    network = GPT(words).cuda()
    optimizer = torch.optim.AdamW(network.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=True)
    tokens = torch.randint(0, 256, (batch, 1025), device='cuda')
    compiled = torch.compile(network)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cuda', torch.bfloat16):
            logits = compiled(tokens[:, :-1])
            loss = functional.cross_entropy(logits.view(-1, words), tokens[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()

    report(f'gpt, batch {batch} x 1024, bf16, compiled', batch * 1024 / seconds_of(step), 'tokens/s')


def sample(words, context=1024):
    network = GPT(words).cuda().to(torch.bfloat16).eval()
    caches = [torch.zeros(2, 1, 12, context, 64, device='cuda', dtype=torch.bfloat16)
              for _ in range(12)]
    token = torch.zeros(1, 1, device='cuda', dtype=torch.long)
    position = torch.full((1,), 512, device='cuda', dtype=torch.long)
    mask = torch.tril(torch.ones(context, context, device='cuda', dtype=torch.bool))

    def advance(token, position):
        logits = network.next(token, position, caches, mask)[:, -1].float()
        chosen = torch.multinomial(torch.softmax(logits / 0.8, 1), 1)
        return chosen

    compiled = torch.compile(advance)

    @torch.no_grad()
    def step():
        token.copy_(compiled(token, position))

    report('gpt, one sequence sampled, bf16, compiled and captured', 1 / seconds_of(captured(step)),
           'tokens/s')


# ---- ResNet-50 ----

def normalised(inputs, filters, size, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, filters, size, stride, size // 2, bias=False),
                         nn.BatchNorm2d(filters))


class Bottleneck(nn.Module):
    def __init__(self, inputs, filters, stride):
        super().__init__()
        self.first, self.second = normalised(inputs, filters, 1), normalised(filters, filters, 3, stride)
        self.third = normalised(filters, 4 * filters, 1)
        same = stride == 1 and inputs == 4 * filters
        self.way = nn.Identity() if same else normalised(inputs, 4 * filters, 1, stride)

    def forward(self, x):
        y = self.third(functional.relu(self.second(functional.relu(self.first(x)))))
        return functional.relu(y + self.way(x))


def resnet50(batch):
    parts, inputs = [normalised(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for i in range(blocks):
            parts.append(Bottleneck(inputs, 64 << stage, 2 if stage and i == 0 else 1))
            inputs = 4 * (64 << stage)
    network = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    network = network.cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4,
                                fused=True)
    images = torch.rand(batch, 3, 224, 224, device='cuda').contiguous(
        memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device='cuda')
    torch.backends.cudnn.benchmark = True
    compiled = torch.compile(network)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cuda', torch.bfloat16):
            loss = functional.cross_entropy(compiled(images), labels)
        loss.backward()
        optimizer.step()

    report(f'resnet50, batch {batch}, bf16, compiled, channels-last', batch / seconds_of(step),
           'images/s')


def products():
    for side in (4096, 8192):
        a, b = (torch.randn(side, side, device='cuda', dtype=torch.bfloat16) for _ in range(2))
        seconds = seconds_of(lambda: a @ b)
        report(f'product, bf16, {side}', 2 * side ** 3 / seconds * 1e-12, 'TFLOP/s')
    x = torch.randn(1 << 29, device='cuda', dtype=torch.bfloat16)
    y = torch.empty_like(x)
    report('copy of 1 GiB', 2 * 2 ** 30 / seconds_of(lambda: y.copy_(x)) * 1e-9, 'GB/s')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('work', choices=('mnist', 'cifar', 'tickets', 'gpt', 'sample', 'resnet50',
                                         'products'))
    parser.add_argument('--batch', type=int)
    parser.add_argument('--words', type=int, default=50304)
    given = parser.parse_args()
    torch.manual_seed(1)
    if given.work == 'gpt':
        gpt(given.batch or 64, given.words)
    elif given.work == 'sample':
        sample(given.words)
    elif given.work == 'resnet50':
        resnet50(given.batch or 256)
    elif given.work == 'products':
        products()
    else:
        small(given.work, given.batch or {'tickets': 32}.get(given.work, 64))


if __name__ == '__main__':
    main()
