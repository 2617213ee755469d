#!/usr/bin/env python3
"""Models that other programs export, run by Tutti and by onnxruntime.

    python3 tests/peers/onnx_models.py TUTTI [NAME ...]

TUTTI is the command. Exporters that are not installed are passed over: PyTorch (both of its
exporters), tf2onnx, skl2onnx, paddle2onnx. Each model is run with the batch it was exported with
and with another one. Exit code 1 when one fails. Needs numpy and onnxruntime."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

TOLERANCE = 1e-3


def torch_models():
    """Name, module, inputs, names of inputs."""
    import torch
    from torch import nn

    class Net(nn.Module):
        """A convolutional network with a flatten that depends on the batch."""
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
            self.norm, self.out = nn.BatchNorm2d(16), nn.Linear(16 * 4 * 4, 10)

        def forward(self, x):
            x = torch.relu(self.a(x))
            x = torch.max_pool2d(torch.relu(self.norm(self.b(x))), 2)
            return self.out(x.view(x.size(0), -1))

    class Block(nn.Module):
        def __init__(self, channels, stride, wide):
            super().__init__()
            self.a = nn.Conv2d(channels, channels * wide, 1, bias=False)
            self.n = nn.BatchNorm2d(channels * wide)
            self.d = nn.Conv2d(channels * wide, channels * wide, 3, stride, 1,
                               groups=channels * wide, bias=False)
            self.m = nn.BatchNorm2d(channels * wide)
            self.c = nn.Conv2d(channels * wide, channels, 1, bias=False)
            self.same = stride == 1

        def forward(self, x):
            y = nn.functional.relu6(self.n(self.a(x)))
            y = self.c(nn.functional.hardswish(self.m(self.d(y))))
            return x + y if self.same else y

    class Mobile(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, 2, 1)
            self.blocks = nn.Sequential(Block(8, 1, 4), Block(8, 2, 4), Block(8, 1, 4))
            self.pool, self.out = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

        def forward(self, x):
            return self.out(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))

    class Attention(nn.Module):
        """Heads made by view and transpose, as most transformers do."""
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(50, 32), nn.Embedding(20, 32)
            self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
            self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

        def forward(self, ids):
            batch, time = ids.shape
            x = self.words(ids) + self.places(torch.arange(time))
            q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
            q, k, v = (t.view(batch, time, 4, 8).transpose(1, 2) for t in (q, k, v))
            mask = torch.triu(torch.full((time, time), float('-inf')), diagonal=1)
            score = torch.softmax(q @ k.transpose(-2, -1) / 8 ** 0.5 + mask, dim=-1)
            x = x + self.out((score @ v).transpose(1, 2).reshape(batch, time, 32))
            return x + self.down(nn.functional.gelu(self.up(x)))

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.LSTM(6, 8, batch_first=True, bidirectional=True, num_layers=2)
            self.b, self.out = nn.GRU(16, 7, batch_first=True), nn.Linear(7, 3)

        def forward(self, x):
            x, _ = self.a(x)
            x, _ = self.b(x)
            return self.out(x[:, -1])

    class Upscale(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.up = nn.Conv2d(2, 8, 3, padding=1), nn.ConvTranspose2d(8, 4, 2, stride=2)
            self.norm, self.shuffle = nn.InstanceNorm2d(4, affine=True), nn.PixelShuffle(2)

        def forward(self, x):
            x = self.norm(self.up(nn.functional.leaky_relu(self.a(x))))
            x = nn.functional.interpolate(x, scale_factor=2, mode='bilinear', align_corners=False)
            return self.shuffle(nn.functional.pad(x, (1, 1, 2, 2), mode='reflect'))

    class Spectrum(nn.Module):
        """A spectrogram, where it is loud, and what is positive."""
        def forward(self, x):
            parts = torch.stft(x, 16, 8, window=torch.hann_window(16), return_complex=False)
            loud = parts.square().sum(-1)
            return loud, torch.nonzero(loud > 1), x[:, :4][x[:, :4] > 0]

    class Slicing(nn.Module):
        """Shapes that are computed: halves, expand, where, cumsum, gather."""
        def forward(self, x):
            half = x.shape[1] // 2
            a, b = x[:, :half], x[:, half:2 * half]
            c = a.unsqueeze(2).expand(-1, -1, 3).reshape(x.shape[0], -1)
            d = torch.where(b > 0, b, b.cumsum(1))
            return torch.cat([c, d, torch.zeros(x.shape[0], 2)], 1), x.argmax(1), d.topk(2).values

    class Lists(nn.Module):
        """Lists that a loop and a branch fill, of a length that the data says."""
        def forward(self, x):
            state, all_rows, some = torch.zeros(x.size(1)), [], []
            for i in range(x.size(0)):
                state = torch.tanh(state + x[i])
                all_rows.append(state)
                if bool(state.sum() > 0):
                    some.append(x[:i + 1])
            return torch.stack(all_rows, 1), torch.cat(some), all_rows[-1]

    torch.manual_seed(1)
    return [('conv', Net(), (torch.randn(2, 3, 16, 16),), ['x']),
            ('mobile', Mobile(), (torch.randn(2, 3, 32, 32),), ['x']),
            ('attention', Attention(), (torch.randint(0, 50, (2, 7)),), ['ids']),
            ('recurrent', Recurrent(), (torch.randn(2, 5, 6),), ['x']),
            ('upscale', Upscale(), (torch.randn(2, 2, 8, 8),), ['x']),
            ('encoder', nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
             (torch.randn(2, 5, 16),), ['x']),
            ('spectrum', Spectrum(), (torch.randn(2, 64),), ['x']),
            ('slicing', Slicing(), (torch.randn(2, 8),), ['x']),
            ('lists', torch.jit.script(Lists()), (torch.randn(6, 8),), ['x'])]


def export_torch(folder):
    import torch
    for name, module, inputs, names in torch_models():
        module = module.eval()
        for dynamo in (False, True):
            path = os.path.join(folder, f'torch_{name}_{"dynamo" if dynamo else "script"}.onnx')
            options = {'dynamo': dynamo, 'input_names': names}
            if dynamo:
                options['dynamic_shapes'] = [{0: torch.export.Dim('batch', min=1, max=64)}
                                             for _ in inputs]
                options['verbose'] = False
            else:
                options['dynamic_axes'] = {n: {0: 'batch'} for n in names}
                options['opset_version'] = 17
            try:
                torch.onnx.export(module, inputs, path, **options)
            except Exception as error:  # an exporter that cannot is not our concern
                print(f'{os.path.basename(path)}: not exported: {str(error)[:100]!r}')
                continue
            yield path, {n: i.numpy() for n, i in zip(names, inputs)}


def export_sklearn(folder):
    import sklearn.datasets
    import sklearn.ensemble
    import sklearn.gaussian_process
    import sklearn.linear_model
    import sklearn.neighbors
    import sklearn.neural_network
    import sklearn.pipeline
    import sklearn.preprocessing
    import sklearn.svm
    import sklearn.tree
    import skl2onnx
    x, y = sklearn.datasets.make_classification(200, 6, n_informative=5, n_redundant=0, n_classes=3,
                                                random_state=1)
    x = x.astype(np.float32)
    scaler = sklearn.preprocessing.StandardScaler
    models = {
        'logistic': sklearn.pipeline.make_pipeline(scaler(), sklearn.linear_model.LogisticRegression()),
        'linear': sklearn.linear_model.LinearRegression(),
        'tree': sklearn.tree.DecisionTreeClassifier(max_depth=4),
        'forest': sklearn.ensemble.RandomForestClassifier(5, max_depth=4),
        'boosting': sklearn.ensemble.GradientBoostingRegressor(n_estimators=8),
        'perceptron': sklearn.neural_network.MLPClassifier((8,), max_iter=300),
        'scaled': sklearn.pipeline.make_pipeline(sklearn.preprocessing.MinMaxScaler(),
                                                 sklearn.preprocessing.Normalizer(),
                                                 sklearn.linear_model.Ridge()),
        'svc': sklearn.svm.SVC(),
        'svc_probability': sklearn.svm.SVC(probability=True),
        'svr': sklearn.svm.SVR(kernel='poly'),
        'neighbours': sklearn.neighbors.KNeighborsClassifier(3),
        'process': sklearn.gaussian_process.GaussianProcessRegressor(),
    }
    for name, model in models.items():
        model.fit(x, y)
        classifies = hasattr(model, 'predict_proba')
        options = {id(model): {'zipmap': False}} if classifies else None
        converted = skl2onnx.to_onnx(model, x[:1], options=options, target_opset=17)
        path = os.path.join(folder, f'sklearn_{name}.onnx')
        with open(path, 'wb') as f:
            f.write(converted.SerializeToString())
        yield path, {'X': x[:5]}


def export_tensorflow(folder):
    import tensorflow as tf
    import tf2onnx
    keras = tf.keras
    models = {
        'dense': keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, 'relu'),
                                   keras.layers.Dense(3, 'softmax')]),
        'conv': keras.Sequential([keras.Input((12, 12, 3)),
                                  keras.layers.Conv2D(8, 3, activation='relu', padding='same'),
                                  keras.layers.BatchNormalization(), keras.layers.MaxPooling2D(),
                                  keras.layers.DepthwiseConv2D(3), keras.layers.Flatten(),
                                  keras.layers.Dense(4)]),
        'lstm': keras.Sequential([keras.Input((5, 4)), keras.layers.LSTM(6), keras.layers.Dense(2)]),
        'gru': keras.Sequential([keras.Input((5, 4)), keras.layers.GRU(6, return_sequences=True),
                                 keras.layers.GRU(5, reset_after=False), keras.layers.Dense(2)]),
        'masked': keras.Sequential([keras.Input((5, 4)), keras.layers.Masking(),
                                    keras.layers.SimpleRNN(6), keras.layers.Dense(2)]),
    }
    for name, model in models.items():
        path = os.path.join(folder, f'keras_{name}.onnx')
        function = tf.function(lambda x, model=model: model(x))
        spec = tf.TensorSpec((None, *model.input_shape[1:]), tf.float32, name='x')
        try:
            tf2onnx.convert.from_function(function, input_signature=[spec], opset=17,
                                          output_path=path)
        except Exception as error:
            print(f'{os.path.basename(path)}: not exported: {str(error)[:100]!r}')
            continue
        yield path, {'x': np.random.default_rng(1).normal(
            size=(2, *model.input_shape[1:])).astype(np.float32)}


def export_paddle(folder):
    import paddle
    import paddle2onnx  # paddle.onnx.export needs it
    assert paddle2onnx
    images = np.random.default_rng(1).normal(size=(2, 3, 64, 64)).astype(np.float32)
    for name in ('resnet18', 'mobilenet_v2', 'mobilenet_v3_small', 'squeezenet1_1'):
        model = getattr(paddle.vision.models, name)(num_classes=5)
        model.eval()
        path = os.path.join(folder, f'paddle_{name}')
        spec = [paddle.static.InputSpec([None, 3, 64, 64], 'float32', 'x')]
        paddle.onnx.export(model, path, input_spec=spec, opset_version=16)
        yield path + '.onnx', {'x': images}


def check(tutti, path, inputs, folder):
    session = onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider'])
    expected = session.run(None, inputs)
    names = [output.name for output in session.get_outputs()]
    arguments = [tutti, 'predict', path, '--output', os.path.join(folder, 'out.npz')]
    for name, value in inputs.items():
        file = os.path.join(folder, f'{len(arguments)}.npy')
        np.save(file, value)
        arguments += ['--input', f'{name}={file}']
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()[:400]
    results = np.load(os.path.join(folder, 'out.npz'))
    worst = 0
    for name, wanted in zip(names, expected):
        got = results[name]
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            return f'{name} is {got.dtype}{got.shape}, wanted {wanted.dtype}{wanted.shape}'
        if wanted.size:
            error = np.abs(got.astype(np.float64) - wanted) / np.maximum(1, np.abs(wanted))
            worst = max(worst, float(error.max()))
    return None if worst <= TOLERANCE else f'differs by {worst:g}'


def main(tutti, chosen):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for export in (export_torch, export_sklearn, export_tensorflow, export_paddle):
            if chosen and not any(export.__name__ == f'export_{name}' for name in chosen):
                continue
            try:
                for path, inputs in export(folder):
                    batches = [inputs, {n: np.concatenate([v, v[:1]]) for n, v in inputs.items()}]
                    for given in batches:
                        wrong = check(tutti, path, given, folder)
                        batch = next(iter(given.values())).shape[0]
                        print(f'{os.path.basename(path)}, batch {batch}: {wrong or "same"}', flush=True)
                        failures += wrong is not None
            except ImportError as missing:
                print(f'{export.__name__}: {missing}')
    return 1 if failures else 0


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
