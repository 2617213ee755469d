"""One worker of two in synchronous data parallelism: parallel_worker.py PEER --rank R --port P.

pytorch is DistributedDataParallel over gloo; pytorch-fused that with the fused optimizer and gradients
as views of the buckets. tensorflow is MultiWorkerMirroredStrategy with a tf.function over Keras layers.
The data is one batch in memory. Both workers take the same number of steps; rank 0 prints.

--work: mnist, the network of examples/2_mnist.c; null, one scalar variable."""
import json
import os
import time

import peer

WORKERS = 2
ROUNDS = 8


class Scalar:
    """The null step: loss = mean(w x), sgd."""

    @staticmethod
    def pytorch(torch):
        class Network(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.ones(()))

            def forward(self, x):
                return self.w * x

        network = Network()
        return network, torch.mean, torch.optim.SGD(network.parameters(), lr=1), torch.ones(1)


def step_pytorch(given):
    torch = peer.pytorch(given.threads)
    from torch import distributed
    distributed.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{given.port}',
                                   rank=given.rank, world_size=WORKERS)
    fused = given.peer == 'pytorch-fused'
    if given.work == 'null':
        network, loss, optimizer, x = Scalar.pytorch(torch)
        inputs, targets = [x], []
    else:
        import networks_pytorch
        work = networks_pytorch.make(given.work, given.batch)
        network, loss, inputs, targets = work.network, work.loss, work.inputs, work.targets
        optimizer = work.optimizer(fused=True if fused else None)
    network = torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=fused)

    def step():
        optimizer.zero_grad()
        loss(network(*inputs), *targets).backward()
        optimizer.step()

    return step, distributed.barrier


def tensorflow_cluster(given):
    """The addresses of both workers: the second's port follows the first's."""
    workers = [f'127.0.0.1:{given.port + i}' for i in range(WORKERS)]
    return json.dumps({'cluster': {'worker': workers},
                       'task': {'type': 'worker', 'index': given.rank}})


def step_tensorflow(given):
    os.environ['TF_CONFIG'] = tensorflow_cluster(given)
    tf = peer.tensorflow(given.threads)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    import networks_tensorflow
    with strategy.scope():
        if given.work == 'null':
            variable = tf.Variable(1.0)
        else:
            work = networks_tensorflow.make(given.work, given.batch)
            work.optimizer.build(work.network.trainable_variables)

    def train():
        with tf.GradientTape() as tape:
            value = work.loss(work.network(work.inputs, training=True), *work.targets) / WORKERS
        weights = work.network.trainable_variables
        gradients = tape.gradient(value, weights)
        work.optimizer.apply_gradients(zip(gradients, weights))

    def null():
        with tf.GradientTape() as tape:
            value = variable * 1.0
        gradient = tape.gradient(value, variable)
        context = tf.distribute.get_replica_context()
        variable.assign_sub(context.all_reduce('mean', gradient))

    @tf.function
    def step():
        strategy.run(null if given.work == 'null' else train)

    return step, lambda: time.sleep(0.5)


def more(parser):
    parser.add_argument('--rank', type=int, required=True)
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--work', choices=('mnist', 'null'), default='mnist')
    parser.add_argument('--batch', type=int, default=64)
    parser.add_argument('--steps', type=int, default=100, help='of a round')


def main():
    given = peer.arguments('pytorch', 'pytorch-fused', 'tensorflow', more=more)
    os.environ['GLOO_SOCKET_IFNAME'] = 'lo'
    make = step_tensorflow if given.peer == 'tensorflow' else step_pytorch
    step, close = make(given)
    for _ in range(10):
        step()
    best = float('inf')
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(given.steps):
            step()
        best = min(best, (time.perf_counter() - start) / given.steps)
    if given.rank == 0:
        if given.work == 'null':
            peer.report('parallel', 'null step', given.peer, best * 1e6, 'us')
        else:
            peer.report('parallel', given.work, given.peer, WORKERS * given.batch / best,
                        'samples/s')
    close()
    os._exit(0)  # gloo's threads may end the process by a signal when the other one is gone


if __name__ == '__main__':
    main()
