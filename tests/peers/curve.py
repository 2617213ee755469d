#!/usr/bin/env python3
"""The lecture's network from the same weights on the same batches: Tutti's loss beside PyTorch's and
Keras', step by step.

    python3 tests/peers/curve.py PROGRAM [ARGUMENTS]     (tests/peers/curve.c, compiled)

Needs numpy, safetensors, torch and tensorflow. Fails when losses differ by more than 1e-4 for
more than one of three seeds."""
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


def torch_losses(start, x, y):
    import torch
    from torch import nn
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(5408, 64), nn.ReLU(), nn.Linear(64, 10))
    # Ours flattens [13, 13, 32], PyTorch's [32, 13, 13].
    hidden = start['hidden/kernel'].reshape(13, 13, 32, 64).transpose(2, 0, 1, 3).reshape(5408, 64)
    values = [start['conv/kernel'].transpose(3, 2, 0, 1), start['conv/bias'], hidden.T,
              start['hidden/bias'], start['out/kernel'].T, start['out/bias']]
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), values):
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)))
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-8)
    losses = []
    for images, labels in zip(x, y):
        loss = nn.functional.cross_entropy(net(torch.from_numpy(images).permute(0, 3, 1, 2)),
                                           torch.from_numpy(labels))
        adam.zero_grad()
        loss.backward()
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


def main():
    """In f32 a curve sometimes parts from the exact one, ours as well as the peers': every seed is
    shown, and two of three must agree."""
    program, arguments = sys.argv[1], sys.argv[2:]
    failed = False
    for name, peer, more in (('PyTorch', torch_losses, ['--set', 'torch=1']),
                             ('Keras', keras_losses, [])):
        agree = 0
        for seed in (1, 2, 3):
            start, x, y, ours = run(program, arguments + more + ['--seed', str(seed)])
            theirs = peer(start, x, y)
            distance = np.abs(ours - theirs) / np.abs(theirs)
            within = bool(distance.max() <= LIMIT) and len(ours) >= 100
            agree += within
            print(f'{name:8} seed {seed}  {len(ours)} steps  loss {ours[0]:.6f} to {ours[-1]:.6f}  '
                  f'theirs {theirs[0]:.6f} to {theirs[-1]:.6f}  largest relative distance '
                  f'{distance.max():.2e} at step {distance.argmax()}'
                  f'{"" if within else "  PARTED"}', flush=True)
        failed |= agree < 2
    print('failed' if failed else f'two of three seeds or more within {LIMIT:g} of each peer')
    return failed


if __name__ == '__main__':
    sys.exit(main())
