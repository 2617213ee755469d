"""The networks of examples/ in Keras, with their losses, optimizers and a synthetic batch."""
import dataclasses
import typing

import tensorflow as tf

keras = tf.keras
layers = tf.keras.layers


@dataclasses.dataclass
class Work:
    network: keras.Model
    loss: typing.Callable  # loss(outputs, *targets)
    optimizer: keras.optimizers.Optimizer
    inputs: typing.Any
    targets: list


def numbers(low, high, *shape):
    return tf.random.uniform(shape, low, high, tf.int64)


def classes(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels, tf.cast(logits, tf.float32)))


def image_work(network, optimizer, batch, side, channels):
    images = tf.random.uniform([batch, side, side, channels]) - 0.5
    return Work(network, classes, optimizer, images, [numbers(0, 10, batch)])


def mnist(batch):
    network = keras.Sequential([
        layers.Input((28, 28, 1)), layers.Conv2D(32, 3, activation='relu'), layers.MaxPool2D(2),
        layers.Flatten(), layers.Dense(64, activation='relu'), layers.Dense(10)])
    return image_work(network, keras.optimizers.Adam(), batch, 28, 1)


def cifar(batch):
    network = keras.Sequential([
        layers.Input((32, 32, 3)), layers.Conv2D(6, 5, activation='relu'), layers.MaxPool2D(2),
        layers.Conv2D(16, 5, activation='relu'), layers.MaxPool2D(2), layers.Flatten(),
        layers.Dense(120, activation='relu'), layers.Dense(84, activation='relu'), layers.Dense(10)])
    return image_work(network, keras.optimizers.SGD(0.01, momentum=0.9), batch, 32, 3)


def tickets(batch):
    title, body = layers.Input((20,), dtype='int32'), layers.Input((100,), dtype='int32')
    tags = layers.Input((12,))
    t = layers.LSTM(128)(layers.Embedding(10000, 64)(title))
    b = layers.LSTM(32)(layers.Embedding(10000, 64)(body))
    x = layers.Concatenate()([t, b, tags])
    network = keras.Model([title, body, tags], [layers.Dense(1)(x), layers.Dense(4)(x)])

    def loss(outputs, priority, department):
        return (tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(priority, outputs[0]))
                + 0.2 * classes(outputs[1], department))

    inputs = [tf.cast(numbers(1, 10000, batch, 20), tf.int32),
              tf.cast(numbers(1, 10000, batch, 100), tf.int32),
              tf.cast(numbers(0, 2, batch, 12), tf.float32)]
    targets = [tf.cast(numbers(0, 2, batch, 1), tf.float32), numbers(0, 4, batch)]
    return Work(network, loss, keras.optimizers.Adam(2e-3), inputs, targets)


class Places(layers.Layer):
    """Adds a trained vector for each place."""

    def build(self, shape):
        self.places = self.add_weight(shape=shape[1:], name='places')

    def call(self, x):
        return x + tf.cast(self.places, x.dtype)


def text(batch, width=128, blocks=4, heads=4, context=64):
    words = layers.Input((context,), dtype='int32')
    x = Places()(layers.Embedding(256, width)(words))
    for _ in range(blocks):
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        x = x + layers.MultiHeadAttention(heads, width // heads)(y, y, use_causal_mask=True)
        y = layers.Dense(4 * width, activation='gelu')(layers.LayerNormalization(epsilon=1e-5)(x))
        x = x + layers.Dense(width)(y)
    network = keras.Model(words, layers.Dense(256)(layers.LayerNormalization(epsilon=1e-5)(x)))
    window = tf.cast(numbers(0, 256, batch, context + 1), tf.int32)
    optimizer = keras.optimizers.AdamW(1e-3, weight_decay=0.01, global_clipnorm=1.0)
    return Work(network, classes, optimizer, window[:, :-1], [window[:, 1:]])


def normalised(x, filters, size, stride):
    x = layers.Conv2D(filters, size, stride, padding='same', use_bias=False)(x)
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def residual(x, filters):
    y = normalised(layers.ReLU()(normalised(x, filters, 3, 2)), filters, 3, 1)
    return layers.ReLU()(normalised(x, filters, 1, 2) + y)


def resnet(batch):
    images = layers.Input((28, 28, 1))
    x = layers.ReLU()(normalised(images, 16, 3, 1))
    for filters in (16, 32, 64):
        x = residual(x, filters)
    network = keras.Model(images, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    return image_work(network, keras.optimizers.AdamW(4e-3, weight_decay=0.01), batch, 28, 1)


def make(name, batch):
    return {'mnist': mnist, 'cifar': cifar, 'tickets': tickets, 'text': text,
            'resnet': resnet}[name](batch)
