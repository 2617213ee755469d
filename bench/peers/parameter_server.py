#!/usr/bin/env python3
"""Asynchronous parameter servers, the lecture's network, 2 workers of batch 64 and 1 server, on this
machine: TensorFlow's ParameterServerStrategy with its coordinator, then ours, in turns.

    PYTHON_WITH_TENSORFLOW bench/peers/parameter_server.py --rounds 3 --program build/examples/2_mnist

Prints one line a round and side in samples a second, and the ratio of the medians.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

BATCH, WORKERS = 64, 2


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def serve(role, index, cluster):
    """A worker or a server of TensorFlow's, until it is ended."""
    import tensorflow as tf
    os.environ['TF_CONFIG'] = json.dumps({'cluster': cluster, 'task': {'type': role, 'index': index}})
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=role, task_index=index,
                                  protocol='grpc', start=True)
    server.join()


def coordinate(cluster, steps):
    """Samples a second of TensorFlow's coordinator."""
    import tensorflow as tf
    os.environ['TF_CONFIG'] = json.dumps({'cluster': cluster, 'task': {'type': 'chief', 'index': 0}})
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = tf.keras.Sequential([
            tf.keras.Input((28, 28, 1)),
            tf.keras.layers.Conv2D(32, 3, activation='relu'),
            tf.keras.layers.MaxPooling2D(2),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation='relu'),
            tf.keras.layers.Dense(10)])
        # Keras 3 has no optimizer for this strategy: Adam's formulas on variables of its own.
        slots = [(tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v)))
                 for v in model.trainable_variables]
        count = tf.Variable(0.0)

    def batches():
        images = tf.random.stateless_uniform((BATCH * 8, 28, 28, 1), (1, 2))
        labels = tf.random.stateless_uniform((BATCH * 8,), (3, 4), 0, 10, tf.int64)
        return tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(
            BATCH, drop_remainder=True).prefetch(2)

    @tf.function
    def step(iterator):
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=y, logits=model(x, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        t = count.assign_add(1.0)
        rate = 1e-3 * tf.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        for v, g, (m, s) in zip(model.trainable_variables, gradients, slots):
            new_m = m.assign_add(0.1 * (g - m))
            new_s = s.assign_add(0.001 * (g * g - s))
            v.assign_sub(rate * new_m / (tf.sqrt(new_s) + 1e-7))
        return loss

    iterator = iter(coordinator.create_per_worker_dataset(batches))
    for _ in range(20 * WORKERS):
        coordinator.schedule(step, args=(iterator,))
    coordinator.join()
    begin = time.perf_counter()
    for _ in range(steps):
        coordinator.schedule(step, args=(iterator,))
    coordinator.join()
    print(json.dumps({'samples_per_second': steps * BATCH / (time.perf_counter() - begin)}))


def tensorflow_round(steps):
    cluster = {'chief': [f'127.0.0.1:{free_port()}'],
               'worker': [f'127.0.0.1:{free_port()}' for _ in range(WORKERS)],
               'ps': [f'127.0.0.1:{free_port()}']}
    env = dict(os.environ, CUDA_VISIBLE_DEVICES='', TF_CPP_MIN_LOG_LEVEL='3')
    me = [sys.executable, os.path.abspath(__file__), '--cluster', json.dumps(cluster)]
    others = [subprocess.Popen(me + ['--role', role, '--index', str(i)], env=env,
                               stderr=subprocess.DEVNULL)
              for role in ('worker', 'ps') for i in range(len(cluster[role]))]
    try:
        done = subprocess.run(me + ['--role', 'chief', '--steps', str(steps)], env=env, timeout=600,
                              stdout=subprocess.PIPE, check=True)
    finally:
        for process in others:
            process.kill()
            process.wait()
    return json.loads(done.stdout.decode().strip().splitlines()[-1])['samples_per_second']


def our_round(program, tutti, steps):
    """Both workers' steps of one epoch after the first, as --json says."""
    done = subprocess.run(
        [tutti, 'run', '-n', str(WORKERS + 1), '--ps', '1', program, '--strategy', 'parameter_server',
         '--batch', str(BATCH * WORKERS), '--epochs', '2', '--steps-per-epoch', str(steps // WORKERS),
         '--json', '--set', 'checkpoints=/tmp/tutti-ps-{epoch}', '--logs', '/tmp/tutti-ps-logs'],
        timeout=600, stdout=subprocess.PIPE, check=False)
    lines = [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith('{')]
    return max(line['samples_per_second'] for line in lines if 'samples_per_second' in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--steps', type=int, default=600)
    parser.add_argument('--program', default='build/examples/2_mnist')
    parser.add_argument('--tutti', default='build/tutti')
    parser.add_argument('--role')
    parser.add_argument('--index', type=int, default=0)
    parser.add_argument('--cluster')
    args = parser.parse_args()
    if args.role == 'chief':
        return coordinate(json.loads(args.cluster), args.steps)
    if args.role:
        return serve(args.role, args.index, json.loads(args.cluster))
    theirs, ours = [], []
    for i in range(args.rounds):
        theirs.append(tensorflow_round(args.steps))
        ours.append(our_round(args.program, args.tutti, args.steps))
        print(f'round {i + 1}: TensorFlow {theirs[-1]:.0f} samples/s, ours {ours[-1]:.0f}', flush=True)
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f'ours / TensorFlow: {ratio:.2f} (promised: 4)')
    return 0


if __name__ == '__main__':
    sys.exit(main())
