"""What is known of an endpoint's features."""

from maniple.config import CapabilityOverrides, ModelSettings
from maniple.llms import FEATURES, Capabilities
from maniple.llms.models import _configured_features


def test_what_is_set_by_hand_wins_over_what_is_learned():
    capabilities = Capabilities(fixed={"tools": True, "schema.format": True})
    capabilities.learn("tools", False)
    capabilities.learn("schema.format", False)
    capabilities.learn("schema.$ref", False)
    assert capabilities.has("tools")
    assert capabilities.refused_keywords == {"$ref"}


def test_every_feature_can_be_set_by_hand():
    chosen = {**dict.fromkeys(FEATURES, False), "schema_keywords": {"format": False}}
    settings = ModelSettings(model="m", capabilities=CapabilityOverrides.model_validate(chosen))
    assert _configured_features(settings) == {**dict.fromkeys(FEATURES, False), "schema.format": False}
