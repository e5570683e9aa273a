"""Test of corpus.py, and of the committed corpora."""

import hashlib
import tempfile
import unittest
from pathlib import Path

import corpus

FULL = b"\x00\xff\n: any"
SHORT = b"x"

# Text -> the line of its first defect and a part of the error; None if the text has no defect.
TEXTS = {
    "": None,
    "eA==\nAP8KOiBhbnk=\n": None,
    "a: eA==\n": None,
    "eA=\n": (1, "BASE64"),
    "eA==\nAP8KOiBhbnk\n": (2, "BASE64"),
    "eB==\n": (1, "BASE64"),
    "eA==\n\n": (2, "BASE64"),
    "\n": (1, "BASE64"),
    "eA== \n": (1, "BASE64"),
    "A name: eA==\n": (1, "BASE64"),
    "a:\n": (1, "BASE64"),
    "eA==\n<<<<<<< HEAD\n": (2, "BASE64"),
    "eA==\r\n": (1, "BASE64"),
    "eA==\na: AP8KOiBhbnk=\nb: eA==\n": (3, "line 1"),
    "a: AP8KOiBhbnk=\na: eA==\n": (2, "name a"),
}


class Parsing(unittest.TestCase):
    def test_an_error_names_the_file_the_line_and_the_defect(self):
        for text, defect in TEXTS.items():
            with self.subTest(text=text):
                if defect is None:
                    corpus.parse(text, "file")
                    continue
                with self.assertRaises(corpus.CorpusError) as raised:
                    corpus.parse(text, "file")
                self.assertTrue(str(raised.exception).startswith(f"file:{defect[0]}: "))
                self.assertIn(defect[1], str(raised.exception))

    def test_what_is_written_is_read_again(self):
        inputs = {"a": FULL, hashlib.sha1(SHORT).hexdigest(): SHORT}
        text = corpus.text_of(inputs)
        self.assertEqual(text, "a: AP8KOiBhbnk=\neA==\n")
        self.assertEqual(corpus.parse(text, "file"), inputs)

    def test_the_committed_corpora_are_as_they_would_be_written(self):
        paths = sorted(corpus.path_of("any").parent.iterdir())
        self.assertGreater(len(paths), 0)
        for path in paths:
            with self.subTest(path=path.name):
                self.assertEqual(path.suffix, ".base64")
                self.assertTrue((corpus.HERE / f"{path.stem}.cpp").exists())
                self.assertEqual(corpus.text_of(corpus.read(path)), path.read_text())


class Combining(unittest.TestCase):
    def test_an_input_is_in_one_corpus_alone(self):
        self.assertEqual(corpus.combined({"a": FULL}, {"b": SHORT}, "here"),
                         {"a": FULL, "b": SHORT})
        for others in ({"a": SHORT}, {"b": FULL}):
            with self.subTest(others=others), self.assertRaises(corpus.CorpusError):
                corpus.combined({"a": FULL}, others, "here")


class Files(unittest.TestCase):
    def test_a_folder_has_one_file_for_each_input(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "inputs")
            for inputs in ({"a": FULL, "b": SHORT}, {"b": FULL}):
                corpus.write_files(inputs, folder)
                self.assertEqual(corpus.read_files(folder.iterdir()), inputs)

    def test_names_made_up_by_libfuzzer_are_not_kept(self):
        digest = hashlib.sha1(SHORT).hexdigest()
        with tempfile.TemporaryDirectory() as name:
            for file in (digest, f"crash-{'0' * 40}"):
                path = Path(name, file)
                path.write_bytes(SHORT)
                self.assertEqual(corpus.read_files([path]), {digest: SHORT})

    def test_a_file_without_bytes_or_with_another_name_is_no_input(self):
        with tempfile.TemporaryDirectory() as name:
            for file, data in (("a", b""), ("A", SHORT), ("a.txt", SHORT)):
                path = Path(name, file)
                path.write_bytes(data)
                with self.subTest(file=file), self.assertRaises(corpus.CorpusError):
                    corpus.read_files([path])


if __name__ == "__main__":
    unittest.main()
