"""3x3 convolutions, padding same: forward and both backward. PyTorch (oneDNN inside) on channels-last
images; im2col and PyTorch's matrix product, as one would write it by hand; TensorFlow."""
import peer

SHAPES = ((32, 64, 64, 32), (32, 128, 128, 16), (32, 16, 32, 28), (8, 64, 64, 56))


def conv_pytorch(torch, n, c, k, h):
    last = torch.channels_last
    x = (torch.rand(n, c, h, h) - 0.5).contiguous(memory_format=last)
    w = (torch.rand(k, c, 3, 3) - 0.5).contiguous(memory_format=last)
    dy = (torch.rand(n, k, h, h) - 0.5).contiguous(memory_format=last)

    def backward(which):
        return lambda: torch.ops.aten.convolution_backward(
            dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, which)

    return {'forward': lambda: torch.nn.functional.conv2d(x, w, padding=1),
            'backward input': backward([True, False, False]),
            'backward kernel': backward([False, True, False])}


def conv_im2col(torch, n, c, k, h):
    """Images as [n, h, w, c]; columns as [n * h * w, 9 * c]."""
    padded = torch.nn.functional.pad(torch.rand(n, h, h, c) - 0.5, (0, 0, 1, 1, 1, 1))
    w, dy = torch.rand(9 * c, k) - 0.5, torch.rand(n * h * h, k) - 0.5
    columns, dx = torch.empty(n, h, h, 3, 3, c), torch.empty_like(padded)
    strides = padded.stride()
    patches = padded.as_strided((n, h, h, 3, 3, c), (*strides[:3], *strides[1:]))

    def gather():
        return columns.copy_(patches).view(n * h * h, 9 * c)

    def backward_input():
        pieces = torch.matmul(dy, w.t()).view(n, h, h, 3, 3, c)
        dx.zero_()
        for i in range(3):
            for j in range(3):
                dx[:, i:i + h, j:j + h] += pieces[:, :, :, i, j]

    return {'forward': lambda: torch.matmul(gather(), w), 'backward input': backward_input,
            'backward kernel': lambda: torch.matmul(gather().t(), dy)}


def conv_tensorflow(tf, n, c, k, h):
    x, w = tf.random.uniform([n, h, h, c]) - 0.5, tf.random.uniform([3, 3, c, k]) - 0.5
    dy = tf.random.uniform([n, h, h, k]) - 0.5
    raw, settings = tf.raw_ops, {'strides': [1, 1, 1, 1], 'padding': 'SAME'}
    return {'forward': lambda: raw.Conv2D(input=x, filter=w, **settings),
            'backward input': lambda: raw.Conv2DBackpropInput(input_sizes=x.shape, filter=w,
                                                              out_backprop=dy, **settings),
            'backward kernel': lambda: raw.Conv2DBackpropFilter(input=x, filter_sizes=w.shape,
                                                                out_backprop=dy, **settings)}


def main():
    given = peer.arguments('pytorch-last', 'pytorch-im2col', 'tensorflow')
    if given.peer == 'tensorflow':
        make, framework = conv_tensorflow, peer.tensorflow(given.threads)
    else:
        make = conv_pytorch if given.peer == 'pytorch-last' else conv_im2col
        framework = peer.pytorch(given.threads)
    for n, c, k, h in SHAPES:
        for name, work in make(framework, n, c, k, h).items():
            seconds = peer.best_seconds(20, 1, work, most_seconds=2)
            peer.report('conv', f'3x3 ({n},{c},{k},{h}) {name}', given.peer,
                        2e-9 * n * h * h * 9 * c * k / seconds, 'GFLOP/s')


if __name__ == '__main__':
    main()
