"""Ten element-wise operators on 64 MiB, the formulas of bench/fused.c.

pytorch runs them one by one (eager), pytorch-compiled and tensorflow-xla fuse them, tensorflow is a
tf.function. PyTorch writes its result into memory that stays, its fastest form, which spares it the
page faults of a new tensor."""
import peer

COUNT = 16 << 20


def chains(abs_, exp, maximum, relu, tanh):
    def cheap(x):
        y = x * 1.5 + x
        y = y * y - x
        y = relu(y + 0.25)
        y = maximum(-y, x)
        return abs_(y * x)

    def dear(x):
        y = x * 1.5 + x
        y = y * y - x
        y = tanh(y + 0.25)
        y = maximum(-y, x)
        return exp(y * x)

    return {'ten cheap operators': cheap, 'with two transcendentals': dear}


def works_pytorch(threads, compiled):
    torch = peer.pytorch(threads)
    x, kept = torch.rand(COUNT) - 0.5, torch.zeros(COUNT)
    last = {}  # the eager form writes its last result in place
    if not compiled:
        last = {'abs_': lambda y: torch.abs(y, out=kept), 'exp': lambda y: torch.exp(y, out=kept)}
    functions = {'abs_': torch.abs, 'exp': torch.exp, 'maximum': torch.maximum, 'relu': torch.relu,
                 'tanh': torch.tanh} | last
    for work, chain in chains(**functions).items():
        if compiled:
            fused = torch.compile(lambda to, y, chain=chain: to.copy_(chain(y)))
            yield work, lambda fused=fused: fused(kept, x)
        else:
            yield work, lambda chain=chain: chain(x)


def works_tensorflow(threads, xla):
    tf = peer.tensorflow(threads)
    x = tf.random.uniform([COUNT]) - 0.5
    for work, chain in chains(tf.abs, tf.exp, tf.maximum, tf.nn.relu, tf.tanh).items():
        function = tf.function(chain, jit_compile=xla)
        yield work, lambda function=function: function(x)


def main():
    given = peer.arguments('pytorch', 'pytorch-compiled', 'tensorflow', 'tensorflow-xla')
    works = works_pytorch if given.peer.startswith('pytorch') else works_tensorflow
    fusing = given.peer in ('pytorch-compiled', 'tensorflow-xla')
    for work, run in works(given.threads, fusing):
        peer.report('fused', work, given.peer, peer.best_seconds(20, 1, run) * 1e3, 'ms')


if __name__ == '__main__':
    main()
