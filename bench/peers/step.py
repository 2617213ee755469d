"""One training step of the lecture's MNIST network, batch 64, Adam: bench/step.c by the peers.

pytorch is eager with the optimizer as it comes; pytorch-fused has Adam(fused=True); tensorflow is a
tf.function over Keras layers; tensorflow-xla the same with jit_compile."""
import peer

BATCH = 64


def step_pytorch(threads, fused):
    torch = peer.pytorch(threads)
    nn = torch.nn
    network = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                            nn.Linear(5408, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(network.parameters(), fused=True if fused else None)
    loss = nn.CrossEntropyLoss()
    images, labels = torch.rand(BATCH, 1, 28, 28) - 0.5, torch.randint(0, 10, (BATCH,))

    def step():
        optimizer.zero_grad()
        loss(network(images), labels).backward()
        optimizer.step()

    return step


def step_tensorflow(threads, xla):
    tf = peer.tensorflow(threads)
    layers = tf.keras.layers
    network = tf.keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(32, 3, activation='relu'), layers.MaxPool2D(2),
        layers.Flatten(), layers.Dense(64, activation='relu'), layers.Dense(10)])
    optimizer = tf.keras.optimizers.Adam()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    images = tf.random.uniform([BATCH, 28, 28, 1]) - 0.5
    labels = tf.random.uniform([BATCH], 0, 10, tf.int64)

    @tf.function(jit_compile=xla)
    def step():
        with tf.GradientTape() as tape:
            value = loss(labels, network(images, training=True))
        weights = network.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, weights), weights))

    return step


def main():
    given = peer.arguments('pytorch', 'pytorch-fused', 'tensorflow', 'tensorflow-xla')
    make = step_pytorch if given.peer.startswith('pytorch') else step_tensorflow
    step = make(given.threads, given.peer in ('pytorch-fused', 'tensorflow-xla'))
    step()
    first, memory = peer.seconds_since_start() * 1e3, peer.resident_mib()
    peer.report('step', 'process start to first finished step', given.peer, first, 'ms')
    peer.report('step', 'resident memory', given.peer, memory, 'MiB')
    seconds = peer.best_seconds(100, 1, step)
    peer.report('step', 'lecture network', given.peer, seconds * 1e3, 'ms')


if __name__ == '__main__':
    main()
