"""A chain of 1000 scalar additions, one by one, and a call that does nothing: bench/dispatch.c by the
peers. TensorFlow's graph rewrites are off, which would make one sum of the chain."""
import peer

CHAIN = 1000


def chain(x):
    y = x
    for _ in range(CHAIN):
        y = y + x
    return y


def works_pytorch(threads):
    torch = peer.pytorch(threads)
    x = torch.tensor(0.5)
    return {'scalar addition': lambda: chain(x)}


def works_tensorflow(threads):
    tf = peer.tensorflow(threads)
    tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': True})
    x = tf.constant(0.5)
    adding, empty = tf.function(chain), tf.function(lambda: None)
    # A function's results may be ready later: reading one waits for it.
    return {'scalar addition': lambda: adding(x).numpy(), 'empty run': empty}


def main():
    given = peer.arguments('pytorch', 'tensorflow')
    works = {'pytorch': works_pytorch, 'tensorflow': works_tensorflow}[given.peer](given.threads)
    adding = peer.best_seconds(20, 10, works['scalar addition']) / CHAIN * 1e9
    peer.report('dispatch', 'scalar addition', given.peer, adding, 'ns')
    if 'empty run' in works:
        empty = peer.best_seconds(20, 200, works['empty run']) * 1e6
        peer.report('dispatch', 'empty run', given.peer, empty, 'us')


if __name__ == '__main__':
    main()
