"""Square f32 products, 256 to 2048: bench/gemm.c by the peers."""
import peer


def product_pytorch(torch, n):
    a, b = torch.rand(n, n) - 0.5, torch.rand(n, n) - 0.5
    return lambda: torch.matmul(a, b)


def product_tensorflow(tf, n):
    a, b = tf.random.uniform([n, n]) - 0.5, tf.random.uniform([n, n]) - 0.5
    return lambda: tf.matmul(a, b)


def main():
    given = peer.arguments('pytorch', 'tensorflow')
    if given.peer == 'pytorch':
        product, framework = product_pytorch, peer.pytorch(given.threads)
    else:
        product, framework = product_tensorflow, peer.tensorflow(given.threads)
    for n in (256, 512, 1024, 2048):
        times = 20 if n < 512 else 4 if n < 1024 else 1
        seconds = peer.best_seconds(5 if n > 1000 else 20, times, product(framework, n))
        peer.report('gemm', f'f32 product {n}', given.peer, 2e-9 * n**3 / seconds, 'GFLOP/s')


if __name__ == '__main__':
    main()
