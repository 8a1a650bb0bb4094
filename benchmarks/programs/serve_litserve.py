"""A LitServe server with CTranslate2: two worker processes, each batches up to 32 requests within 5 milliseconds.

`python serve_litserve.py '{"model": …, "tokenizer": …, "penalty": 1.0, "beam": 5, "port": 5000}'`
"""

import json
import sys

import litserve


class Translation(litserve.LitAPI):
    """Translates batches of texts."""

    def setup(self, device):
        """Load the model, in each worker."""
        import ctranslate2
        from tokenizers import Tokenizer

        self.settings = json.loads(sys.argv[1])
        self.tokenizer = Tokenizer.from_file(self.settings["tokenizer"])
        self.translator = ctranslate2.Translator(
            self.settings["model"], compute_type="float32", inter_threads=1, intra_threads=1
        )

    def decode_request(self, request):
        """Return the text of a request."""
        return request["q"]

    def batch(self, inputs):
        """Return the texts of several requests."""
        return list(inputs)

    def predict(self, inputs):
        """Return the translations of texts."""
        tokens = [one.tokens for one in self.tokenizer.encode_batch(inputs, add_special_tokens=False)]
        found = self.translator.translate_batch(
            tokens,
            beam_size=self.settings["beam"],
            length_penalty=self.settings["penalty"],
            max_decoding_length=256,
        )
        return self.tokenizer.decode_batch(
            [[self.tokenizer.token_to_id(token) for token in one.hypotheses[0]] for one in found]
        )

    def unbatch(self, output):
        """Return the translations one by one."""
        return output

    def encode_response(self, output):
        """Return the answer to a request."""
        return {"translatedText": output}


if __name__ == "__main__":
    api = Translation(max_batch_size=32, batch_timeout=0.005, api_path="/translate")
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=2, timeout=120)
    server.run(port=json.loads(sys.argv[1])["port"], host="127.0.0.1", generate_client_file=False, log_level="warning")
