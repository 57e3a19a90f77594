"""Ways of expressions with quoted literals, whose type their place decides; and JSON by names.

The format is that of `scalar_templates`. There, every literal says its type; here, a text has none
until it meets a value: it must be read as that value's type, before anything is computed.
"""

from __future__ import annotations

from typing import Final

QUOTED: Final = r"""
# --- a literal beside values of a type
int4: coalesce({int4}, '7')
~int4: coalesce({int4}, 'abc')
~int4: coalesce(7, 'abc')
int4: greatest({int4}, '12')
~int4: least({int4}, '1.5')
int4: nullif({int4}, '3')
~int4: nullif({int4}, 'x')
int4: (ARRAY[{int4}, '5'])[2]
~int4: (ARRAY[{int4}, 'five'])[1]
int4: ({date} - '2024-01-01')
~int4: ('12' + {int4})
~int2: coalesce({int2}, '40000')
numeric: coalesce({numeric}, '1.50')
numeric: ({numeric} + '2.5')
~numeric: CASE WHEN {bool} THEN {numeric} ELSE 'x' END
float8: greatest({float8}, '1e3', 'NaN')
date: CASE WHEN {bool} THEN {date} ELSE '2024-02-29' END
~date: coalesce({date}, '2024-02-30')
timestamp: greatest({timestamp}, '2024-02-29 12:00')
timestamptz: coalesce({timestamptz}, '2024-02-29 12:00 Europe/Berlin')
time: least({time}, '12:30')
interval: coalesce({interval}, '1 day 02:00')
interval: ({timestamp} - '2024-01-01 06:00')
text: CASE {text} WHEN 'a' THEN 'first' ELSE 'other' END
int4[]: ({int4[]} || '{7,8}')
text[]: array_append({text[]}, 'z')
jsonb: coalesce({jsonb}, '{"a": [1, null]}')
jsonb: ({jsonb} || '{"a": 1}')
bool: ({int4} IN (1, '2', {int4}))
~bool: ({int4} IN ({int4}, 'x'))
~bool: ({int4} NOT IN ('2', NULL, '3.5'))
bool: ({date} = '2024-01-15')
~bool: ({date} < 'soon')
bool: ({timestamptz} >= '2024-01-15 00:00+02')
bool: ({int4} BETWEEN '1' AND '9')
bool: ({uuid} = '00000000-0000-0000-0000-000000000000')
bool: ({jsonb} @> '{"a": 1}')
bool: ({int4[]} && '{1,2,3}')
bool: ({mood} > 'ok')
~bool: ({mood} = 'glad')
bool: (({int4}, {text}) = (1, 'a'))
bool: (({int4}, {date}) IN ((1, '2024-01-15'), ('2', NULL)))
bool: ({float8} < '1e3')
bool: ({bool} = 'yes')
~bool: ({bool} = 'maybe')
# --- JSON, by the names of its operators
jsonb: jsonb_array_element({jsonb}, 1)
text: jsonb_array_element_text({jsonb}, 0)
jsonb: jsonb_object_field({jsonb}, 'a')
text: jsonb_object_field_text({jsonb}, 'k')
bool: jsonb_contains({jsonb}, {jsonb})
bool: jsonb_contained({jsonb}, {jsonb})
bool: jsonb_exists({jsonb}, 'a')
bool: jsonb_exists_any({jsonb}, ARRAY['a', 'b'])
bool: jsonb_exists_all({jsonb}, ARRAY['a', 'k'])
jsonb: jsonb_concat({jsonb}, {jsonb})
~jsonb: jsonb_delete({jsonb}, 'a')
~jsonb: jsonb_delete_path({jsonb}, ARRAY['a', 'k'])
json: json_array_element({json}, 0)
json: json_object_field({json}, 'a')
text: json_object_field_text({json}, 'a')
json: json_extract_path({json}, 'a', 'k')
text: textcat({text}, {text})
bool: booleq({bool}, {bool})
bool: boolne({bool}, {bool})
bool: notlike({text}, {like})
"""
