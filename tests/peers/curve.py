#!/usr/bin/env python3
"""The lecture's network from the same weights on the same batches: Tutti's loss beside PyTorch's and
Keras', step by step.

    python3 tests/peers/curve.py PROGRAM [ARGUMENTS]     (tests/peers/curve.c, compiled)

Needs numpy, safetensors, torch and tensorflow. What f32 allows is shown twice: by PyTorch in f64 from
the same weights, and by PyTorch in f32 whose hidden layer adds its products up in other orders. A
pre-activation that is zero but for rounding falls on either side of ReLU's kink, and from there on a
curve parts from the exact one, ours as well as the peers'. So some seeds part by chance; a wrong
formula parts in all of them. Fails when ours is beyond 1e-4 of a peer's for more seeds than chance
would have it (5 %, Fisher's exact test) of curves that part as often as PyTorch's in other orders do,
or when ours is farther from f64 than the peer's in the median of the seeds. A curve that is within 1e-4
of f64 where the peer's is not has not parted: that holds for ours and for the other orders."""
import math
import os
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
warnings.filterwarnings('ignore')
import numpy as np
import safetensors.numpy

LIMIT = 1e-4
SEEDS = range(1, 9)
ORDERS = 5  # of sums, in which PyTorch is held against itself
CHANCE = 0.05


def keras_adam(parameters, moments, step, rate=1e-3, epsilon=1e-7):
    """Keras' form, where epsilon is added to the root before the bias is corrected."""
    import torch
    rate *= (1 - 0.999 ** step) ** 0.5 / (1 - 0.9 ** step)
    with torch.no_grad():
        for parameter, (m, v) in zip(parameters, moments):
            m += (parameter.grad - m) * (1 - 0.9)
            v += (parameter.grad ** 2 - v) * (1 - 0.999)
            parameter -= rate * m / (v.sqrt() + epsilon)


def torch_losses(start, x, y, exact=False, keras=False, order=0):
    """`order` > 0: the hidden layer's inputs, and its weights with them, are shuffled, which changes
    nothing but the order of its sums."""
    import torch
    from torch import nn
    places = np.arange(5408) if order == 0 else np.random.default_rng(order).permutation(5408)

    class Shuffle(nn.Module):
        def forward(self, inputs):
            return inputs[:, torch.from_numpy(places)]

    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        Shuffle() if order else nn.Identity(), nn.Linear(5408, 64), nn.ReLU(),
                        nn.Linear(64, 10))
    dtype = torch.float64 if exact else torch.float32
    net = net.to(dtype)
    # Ours flattens [13, 13, 32], PyTorch's [32, 13, 13].
    hidden = start['hidden/kernel'].reshape(13, 13, 32, 64).transpose(2, 0, 1, 3).reshape(5408, 64)
    values = [start['conv/kernel'].transpose(3, 2, 0, 1), start['conv/bias'], hidden.T[:, places],
              start['hidden/bias'], start['out/kernel'].T, start['out/bias']]
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), values):
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)))
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-8)
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in net.parameters()]
    losses = []
    for step, (images, labels) in enumerate(zip(x, y), 1):
        inputs = torch.from_numpy(images).permute(0, 3, 1, 2).to(dtype)
        loss = nn.functional.cross_entropy(net(inputs), torch.from_numpy(labels))
        adam.zero_grad()
        loss.backward()
        if keras:
            keras_adam(list(net.parameters()), moments, step)
        else:
            adam.step()
        losses.append(loss.item())
    return np.array(losses)


def keras_losses(start, x, y):
    import tensorflow as tf
    from tensorflow import keras
    net = keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Conv2D(32, 3, activation='relu'),
                            keras.layers.MaxPooling2D(2), keras.layers.Flatten(),
                            keras.layers.Dense(64, activation='relu'), keras.layers.Dense(10)])
    net.set_weights([start[name] for name in ('conv/kernel', 'conv/bias', 'hidden/kernel',
                                              'hidden/bias', 'out/kernel', 'out/bias')])
    adam = keras.optimizers.Adam(1e-3)
    entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    losses = []
    for images, labels in zip(x, y):
        with tf.GradientTape() as tape:
            loss = entropy(labels, net(images, training=True))
        adam.apply_gradients(zip(tape.gradient(loss, net.trainable_variables),
                                 net.trainable_variables))
        losses.append(float(loss))
    return np.array(losses)


def run(program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder] + arguments, check=True)
        batches = np.load(os.path.join(folder, 'batches.npz'))
        return (safetensors.numpy.load_file(os.path.join(folder, 'start.safetensors')),
                batches['x'], batches['y'], np.load(os.path.join(folder, 'losses.npy')))


def distance(losses, from_losses):
    """The largest relative distance over the steps."""
    return float((np.abs(losses - from_losses) / np.abs(from_losses)).max())


def parts(losses, theirs, exact):
    """Whether a curve is beyond the limit from the peer's, and not because the peer's alone parted."""
    return distance(losses, theirs) > LIMIT and not (
        distance(losses, exact) <= LIMIT < distance(theirs, exact))


def chance_of(ours, seeds, others, orders):
    """The chance that at least `ours` of `seeds` curves part, when all parting ones are as likely to be
    ours as the others' (Fisher)."""
    parted = ours + others
    ways = sum(math.comb(seeds, k) * math.comb(orders, parted - k)
               for k in range(ours, min(seeds, parted) + 1))
    return ways / math.comb(seeds + orders, parted)


def compare(name, peer, program, arguments, keras):
    """Every seed beside one peer, and both beside f64. True when they agree."""
    within = parted = others_parted = 0
    offs = []
    for seed in SEEDS:
        start, x, y, ours = run(program, arguments + ['--seed', str(seed)])
        if len(ours) < 100:
            sys.exit(f'{name}: only {len(ours)} steps')
        theirs, exact = peer(start, x, y), torch_losses(start, x, y, exact=True, keras=keras)
        others = [torch_losses(start, x, y, keras=keras, order=i + 1) for i in range(ORDERS)]
        offs.append((distance(ours, exact), distance(theirs, exact)))
        far = parts(ours, theirs, exact)
        within += distance(ours, theirs) <= LIMIT
        parted += far
        others_parted += sum(parts(each, theirs, exact) for each in others)
        print(f'{name:8} seed {seed}  {len(ours)} steps  loss {ours[0]:.6f} to {ours[-1]:.6f}  '
              f'apart {distance(ours, theirs):.1e}  from f64: ours {offs[-1][0]:.1e}, theirs '
              f'{offs[-1][1]:.1e}  PyTorch in other orders: '
              + ' '.join(f'{distance(each, theirs):.0e}' for each in others)
              + ('  PARTED' if far else ''), flush=True)
    ours_off, theirs_off = np.median(offs, axis=0)
    chance = chance_of(parted, len(SEEDS), others_parted, len(SEEDS) * ORDERS)
    print(f'{name:8} {within} of {len(SEEDS)} seeds within {LIMIT:g} of each other; ours parted in '
          f'{parted}, PyTorch in other orders in {others_parted} of {len(SEEDS) * ORDERS}: so many of '
          f'ours or more by chance {chance:.0%}. Median distance from f64: ours {ours_off:.1e}, theirs '
          f'{theirs_off:.1e}')
    return chance >= CHANCE and ours_off <= theirs_off


def main():
    program, arguments = sys.argv[1], sys.argv[2:]
    good = compare('PyTorch', torch_losses, program, arguments + ['--set', 'torch=1'], False)
    good = compare('Keras', keras_losses, program, arguments, True) and good
    print('passed' if good else 'failed')
    return not good


if __name__ == '__main__':
    sys.exit(main())
