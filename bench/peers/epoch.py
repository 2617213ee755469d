"""An epoch of the lecture's network on 60,000 images in memory, batch 64, as users write it: Keras fit
with its progress bar, a PyTorch loop over a DataLoader with the loss added up. The faster of two."""
import os
import time

import peer

COUNT, BATCH = 60000, 64


def epochs_pytorch(given):
    torch = peer.pytorch(given.threads)
    import networks_pytorch
    work = networks_pytorch.make('mnist', BATCH)
    optimizer = work.optimizer(fused=True if given.peer == 'pytorch-fused' else None)
    data = torch.utils.data.TensorDataset(torch.rand(COUNT, 1, 28, 28),
                                          torch.randint(0, 10, (COUNT,)))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True)

    def epoch():
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            value = work.loss(work.network(images), labels)
            value.backward()
            optimizer.step()
            total += value.item()
        return total

    return epoch


def epochs_tensorflow(given):
    tf = peer.tensorflow(given.threads)
    import numpy
    import networks_tensorflow
    network = networks_tensorflow.make('mnist', BATCH).network
    network.compile(tf.keras.optimizers.Adam(),
                    tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                    metrics=['accuracy'], jit_compile=given.peer == 'tensorflow-xla')
    images = numpy.random.rand(COUNT, 28, 28, 1).astype('float32')
    labels = numpy.random.randint(0, 10, COUNT)
    return lambda: network.fit(images, labels, batch_size=BATCH, epochs=1, verbose=1)


def timed(epoch):
    """Its seconds; what it prints goes nowhere."""
    out, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    start = time.perf_counter()
    epoch()
    seconds = time.perf_counter() - start
    os.dup2(out, 1)
    os.close(out)
    os.close(nowhere)
    return seconds


def main():
    given = peer.arguments('pytorch', 'pytorch-fused', 'tensorflow', 'tensorflow-xla')
    epoch = (epochs_pytorch if given.peer in peer.PYTORCH else epochs_tensorflow)(given)
    seconds = min(timed(epoch), timed(epoch))
    peer.report('epoch', 'MNIST epoch through fit, batch 64', given.peer, seconds, 's')


if __name__ == '__main__':
    main()
