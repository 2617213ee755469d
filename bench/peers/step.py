"""One training step of an example, by the peers: step.py PEER --work NAME --batch N --precision P.

pytorch is eager with the optimizer as it comes; pytorch-fused has the fused optimizer; pytorch-last
that and channels-last images; pytorch-compiled that and torch.compile. tensorflow is a tf.function
over Keras layers; tensorflow-xla the same with jit_compile. The networks are those of examples/, in
networks_pytorch.py and networks_tensorflow.py."""
import contextlib

import peer

WORKS = ('mnist', 'cifar', 'tickets', 'text', 'resnet')


def step_pytorch(given):
    torch = peer.pytorch(given.threads)
    import networks_pytorch
    work = networks_pytorch.make(given.work, given.batch)
    network, loss, inputs, targets = work.network, work.loss, work.inputs, work.targets
    optimizer = work.optimizer(fused=True if given.peer != 'pytorch' else None)
    if given.peer == 'pytorch-last':
        network = network.to(memory_format=torch.channels_last)
        inputs = [x.contiguous(memory_format=torch.channels_last) for x in inputs]
    if given.peer == 'pytorch-compiled':
        network = torch.compile(network)
    half = given.precision == 'bf16'

    def step():
        optimizer.zero_grad()
        with torch.autocast('cpu', torch.bfloat16) if half else contextlib.nullcontext():
            value = loss(network(*inputs), *targets)
        value.backward()
        if work.clip:
            torch.nn.utils.clip_grad_norm_(network.parameters(), work.clip)
        optimizer.step()

    return step


def step_tensorflow(given):
    tf = peer.tensorflow(given.threads)
    if given.precision == 'bf16':
        tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')
    import networks_tensorflow
    work = networks_tensorflow.make(given.work, given.batch)

    @tf.function(jit_compile=given.peer == 'tensorflow-xla')
    def step():
        with tf.GradientTape() as tape:
            value = work.loss(work.network(work.inputs, training=True), *work.targets)
        weights = work.network.trainable_variables
        work.optimizer.apply_gradients(zip(tape.gradient(value, weights), weights))

    return step


def more(parser):
    parser.add_argument('--work', choices=WORKS, default='mnist')
    parser.add_argument('--batch', type=int, default=64)
    parser.add_argument('--precision', choices=('f32', 'bf16'), default='f32')


def main():
    given = peer.arguments(*peer.PYTORCH, *peer.TENSORFLOW, more=more)
    step = (step_pytorch if given.peer in peer.PYTORCH else step_tensorflow)(given)
    step()
    first, memory = peer.seconds_since_start() * 1e3, peer.resident_mib()
    name = f'{given.work}, batch {given.batch}, {given.precision}'
    peer.report('step', f'{name}: process start to first finished step', given.peer, first, 'ms')
    peer.report('step', f'{name}: resident memory', given.peer, memory, 'MiB')
    peer.report('step', name, given.peer, peer.best_seconds(100, 1, step) * 1e3, 'ms')


if __name__ == '__main__':
    main()
