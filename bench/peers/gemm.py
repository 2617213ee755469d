"""Products by the peers: bench/gemm.c's square ones, and those of training."""
import peer

# name, form ("tn": a is stored transposed), batch, m, k, n, type; as in bench/gemm.c
SHAPES = (
    ('lecture dense', 'nn', 1, 64, 5408, 64, 'f32'),
    ('lecture dense, weight', 'tn', 1, 5408, 64, 64, 'f32'),
    ('lecture dense, input', 'nt', 1, 64, 64, 5408, 'f32'),
    ('lecture logits', 'nn', 1, 64, 64, 10, 'f32'),
    ('LSTM gates', 'nn', 1, 32, 192, 512, 'f32'),
    ('transformer up', 'nn', 1, 2048, 128, 512, 'f32'),
    ('transformer down', 'nn', 1, 2048, 512, 128, 'f32'),
    ('transformer up, weight', 'tn', 1, 128, 2048, 512, 'f32'),
    ('transformer up, input', 'nt', 1, 2048, 512, 128, 'f32'),
    ('attention scores', 'nt', 128, 64, 32, 64, 'f32'),
    ('attention values', 'nn', 128, 64, 64, 32, 'f32'),
    ('transformer up', 'nn', 1, 2048, 128, 512, 'bf16'),
    ('transformer up, weight', 'tn', 1, 128, 2048, 512, 'bf16'),
    ('attention scores', 'nt', 128, 64, 32, 64, 'bf16'),
    ('square', 'nn', 1, 1024, 1024, 1024, 'f32'),
    ('square', 'nn', 1, 1024, 1024, 1024, 'bf16'),
)


def operands_pytorch(torch, a, b, dtype):
    dtype = torch.bfloat16 if dtype == 'bf16' else torch.float32
    return (torch.rand(*a) - 0.5).to(dtype), (torch.rand(*b) - 0.5).to(dtype)


def operands_tensorflow(tf, a, b, dtype):
    dtype = tf.bfloat16 if dtype == 'bf16' else tf.float32
    return tf.cast(tf.random.uniform(a) - 0.5, dtype), tf.cast(tf.random.uniform(b) - 0.5, dtype)


def product_pytorch(torch, a, b, form):
    a = a.transpose(-1, -2) if form[0] == 't' else a
    b = b.transpose(-1, -2) if form[1] == 't' else b
    out = torch.matmul(a, b)
    return lambda: torch.matmul(a, b, out=out)


def product_tensorflow(tf, a, b, form):
    return lambda: tf.matmul(a, b, transpose_a=form[0] == 't', transpose_b=form[1] == 't')


def main():
    given = peer.arguments('pytorch', 'tensorflow')
    if given.peer == 'pytorch':
        framework, operands, product = peer.pytorch(given.threads), operands_pytorch, product_pytorch
    else:
        framework = peer.tensorflow(given.threads)
        operands, product = operands_tensorflow, product_tensorflow
    for n in (256, 512, 1024, 2048):
        times = 20 if n < 512 else 4 if n < 1024 else 1
        work = product(framework, *operands(framework, (n, n), (n, n), 'f32'), 'nn')
        seconds = peer.best_seconds(20, times, work)
        peer.report('gemm', f'f32 product {n}', given.peer, 2e-9 * n**3 / seconds, 'GFLOP/s')
    for name, form, batch, m, k, n, dtype in SHAPES:
        a, b = (k, m) if form[0] == 't' else (m, k), (n, k) if form[1] == 't' else (k, n)
        if batch > 1:
            a, b = (batch, *a), (batch, *b)
        work = product(framework, *operands(framework, a, b, dtype), form)
        seconds = peer.best_seconds(50, 1, work, most_seconds=2)
        peer.report('gemm', f'{dtype} {name}, {batch} x {m} x {k} x {n}', given.peer,
                    2e-9 * batch * m * k * n / seconds, 'GFLOP/s')


if __name__ == '__main__':
    main()
