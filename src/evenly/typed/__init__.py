"""Settings as frozen dataclasses: typed, documented, checked when made, from plain mappings and back."""

from evenly.typed.classes import Setting as Setting
from evenly.typed.classes import Settings as Settings
from evenly.typed.classes import from_mapping as from_mapping
from evenly.typed.classes import identity_settings as identity_settings
from evenly.typed.classes import setting as setting
from evenly.typed.classes import settings as settings
from evenly.typed.classes import to_mapping as to_mapping
from evenly.typed.options import Options as Options
