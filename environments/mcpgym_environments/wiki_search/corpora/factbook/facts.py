# ruff: noqa: E501 (a table: a fact's names and questions on a line each)
"""The kinds of fact that the Factbook states of many countries, and how people ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mcpgym_environments.wiki_search.knowledge import Relation, ValueKind

Reader = Literal[
    "figure",
    "name",
    "title",
    "code",
    "currency",
    "peak",
    "peak height",
    "day",
    "from",
    "borders",
    "longest",
    "only",
    "holder",
]


@dataclass(frozen=True, slots=True)
class Fact:
    """A relation, the part of a field that states it, and how it is read there; ``pattern`` is that of a figure's unit."""

    relation: Relation
    category: str
    field: str
    part: str
    reader: Reader
    pattern: str = ""


FACTS: dict[str, Fact] = {}


def _add(
    name: str, place: str, reader: Reader, phrases: str, questions: str, unit: str = "", pattern: str = ""
) -> None:
    category, field, part = (*(piece.strip() for piece in place.split(">")), "")[:3]
    value: ValueKind = "number" if reader in ("figure", "peak height") else "date" if reader == "day" else "text"
    if reader in ("from", "borders", "longest", "only", "holder"):
        value = "entity"
    relation = Relation(
        name,
        "country",
        value,
        object="country" if value == "entity" else "",
        unit=unit,
        functional=reader != "borders",
        phrases=tuple(phrase.strip() for phrase in phrases.split("|")),
        questions=tuple(question.strip() for question in questions.split("|")),
    )
    FACTS[name] = Fact(relation, category, field, part, reader, pattern)


_SQ_KM, _YEARS = r"sq km", r"years"
_add(
    "area",
    "Geography > Area > total",
    "figure",
    "the total area of {} | the area of {} | the size of the territory of {}",
    "What is the total area of {} in square kilometres? | How many square kilometres does {} cover? | How large is {}, in square kilometres?",
    "km²",
    _SQ_KM,
)
_add(
    "land_area",
    "Geography > Area > land",
    "figure",
    "the land area of {} | the area of land in {} | the area of {} without its water",
    "What is the land area of {} in square kilometres? | How many square kilometres of land does {} have? | Without its water, how many square kilometres is {}?",
    "km²",
    _SQ_KM,
)
_add(
    "land_boundaries",
    "Geography > Land boundaries > total",
    "figure",
    "the total length of the land boundaries of {} | the length of the land borders of {} | how far the land borders of {} run",
    "How long are the land boundaries of {} in total, in kilometres? | What is the total length of the land borders of {} in kilometres? | How many kilometres of land border does {} have?",
    "km",
    "km",
)
_add(
    "coastline",
    "Geography > Coastline",
    "figure",
    "the length of the coastline of {} | the coastline of {} | the length of the coast of {}",
    "How long is the coastline of {} in kilometres? | How many kilometres of coastline does {} have? | What is the length of the coast of {} in kilometres?",
    "km",
    "km",
)
_add(
    "mean_elevation",
    "Geography > Elevation > mean elevation",
    "figure",
    "the mean elevation of {} | the average elevation of {} | the mean height of the land of {}",
    "What is the mean elevation of {} in metres? | How many metres above the sea does {} lie on average? | What is the average elevation of {} in metres?",
    "m",
    "m",
)
_add(
    "irrigated_land",
    "Geography > Irrigated land",
    "figure",
    "the irrigated land of {} | the area of irrigated land in {} | the area that is irrigated in {}",
    "How many square kilometres of irrigated land does {} have? | What is the area of irrigated land in {} in square kilometres? | How many square kilometres are irrigated in {}?",
    "km²",
    _SQ_KM,
)
_add(
    "highest_point",
    "Geography > Elevation > highest point",
    "peak",
    "the highest point of {} | the highest place in {} | the highest elevation of {}",
    "What is the highest point of {}? | What is the highest place in {} called? | Which is the highest elevation of {}?",
)
_add(
    "highest_elevation",
    "Geography > Elevation > highest point",
    "peak height",
    "the height of the highest point of {} | the elevation of the highest point in {} | how high the highest place of {} is",
    "How high is the highest point of {} in metres? | What is the elevation of the highest point of {} in metres? | At how many metres lies the highest place of {}?",
    "m",
)
_add(
    "lowest_point",
    "Geography > Elevation > lowest point",
    "peak",
    "the lowest point of {} | the lowest place in {} | the lowest elevation of {}",
    "What is the lowest point of {}? | What is the lowest place in {} called? | Which is the lowest elevation of {}?",
)
_add(
    "capital",
    "Government > Capital > name",
    "name",
    "the capital of {} | the capital city of {} | the seat of the government of {}",
    "What is the capital of {}? | Which city is the capital of {}? | In which city is the government of {} seated?",
)
_add(
    "independence_day",
    "Government > Independence",
    "day",
    "the day on which {} became independent | the date of the independence of {} | the independence day of {}",
    "When did {} become independent? | On what date did {} gain its independence? | What is the date of the independence of {}?",
)
_add(
    "independent_from",
    "Government > Independence",
    "from",
    "the country from which {} became independent | the country that {} gained its independence from | the country that {} belonged to before its independence",
    "From which country did {} become independent? | Which country did {} gain its independence from? | To which country did {} belong before its independence?",
)
_add(
    "borders",
    "Geography > Land boundaries > border countries",
    "borders",
    "the countries that border {} | the neighbours of {} by land | the countries that {} has a land border with",
    "Which countries border {}? | What are the neighbours of {} by land? | With which countries does {} have a land border?",
)
_add(
    "longest_border",
    "Geography > Land boundaries > border countries",
    "longest",
    "the country with which {} has its longest land border | the country that {} shares its longest border with | the neighbour of {} with the longest common border",
    "With which country does {} have its longest land border? | Which country does {} share its longest border with? | Which neighbour of {} has the longest common border with it?",
)
_add(
    "only_neighbour",
    "Geography > Land boundaries > border countries",
    "only",
    "the only country that borders {} | the only neighbour of {} by land | the one country that {} has a land border with",
    "Which is the only country that borders {}? | What is the only neighbour of {} by land? | With which one country does {} have a land border?",
)
_add(
    "belongs_to",
    "Government > Dependency status",
    "holder",
    "the country that {} is a territory of | the country that {} belongs to | the country on which {} depends",
    "Of which country is {} a territory? | To which country does {} belong? | On which country does {} depend?",
)
_add(
    "anthem",
    "Government > National anthem(s) > title",
    "title",
    "the national anthem of {} | the title of the national anthem of {} | the song that is the anthem of {}",
    "What is the national anthem of {}? | What is the title of the national anthem of {}? | Which song is the anthem of {}?",
)
_add(
    "currency",
    "Economy > Exchange rates > Currency",
    "currency",
    "the code of the currency of {} | the three-letter code of the money of {} | the currency code of {}",
    "What is the code of the currency of {}? | Which three letters are the code of the currency of {}? | What is the currency code of {}?",
)
_add(
    "internet_code",
    "Communications > Internet country code",
    "code",
    "the internet country code of {} | the top-level internet domain of {} | the ending of the internet addresses of {}",
    "What is the internet country code of {}? | Which top-level internet domain does {} have? | On what do the internet addresses of {} end?",
)
_add(
    "aircraft_prefix",
    "Transportation > Civil aircraft registration country code prefix",
    "code",
    "the prefix of the civil aircraft registrations of {} | the aircraft registration prefix of {} | the code with which aircraft of {} are registered",
    "What is the civil aircraft registration prefix of {}? | With which prefix are the civil aircraft of {} registered? | Which code do the registrations of aircraft of {} begin with?",
)
_add(
    "population",
    "People and Society > Population > total",
    "figure",
    "the population of {} | the number of people who live in {} | the number of inhabitants of {}",
    "What is the population of {}? | How many people live in {}? | How many inhabitants does {} have?",
    "people",
    "",
)
_add(
    "median_age",
    "People and Society > Median age > total",
    "figure",
    "the median age in {} | the median age of the population of {} | the median age of the people of {}",
    "What is the median age in {}? | What is the median age of the population of {}, in years? | How old is the median inhabitant of {}?",
    "years",
    _YEARS,
)
_add(
    "life_expectancy",
    "People and Society > Life expectancy at birth > total population",
    "figure",
    "the life expectancy at birth in {} | the life expectancy in {} | how long a child born in {} can expect to live",
    "What is the life expectancy at birth in {}, in years? | How many years is the life expectancy in {}? | How many years can a child born in {} expect to live?",
    "years",
    _YEARS,
)
_add(
    "growth_rate",
    "People and Society > Population growth rate",
    "figure",
    "the population growth rate of {} | the yearly growth of the population of {} | the rate at which the population of {} grows",
    "What is the population growth rate of {} in percent? | By how many percent does the population of {} grow a year? | At what rate does the population of {} grow?",
    "%",
    "%",
)
_add(
    "birth_rate",
    "People and Society > Birth rate",
    "figure",
    "the birth rate of {} per 1,000 people | the number of births per 1,000 people in {} | how many children are born per 1,000 people in {}",
    "What is the birth rate of {} per 1,000 people? | How many births per 1,000 people are there in {}? | Per 1,000 people, how many children are born in {}?",
    "",
    r"births/1,000 population",
)
_add(
    "death_rate",
    "People and Society > Death rate",
    "figure",
    "the death rate of {} per 1,000 people | the number of deaths per 1,000 people in {} | how many of 1,000 people die each year in {}",
    "What is the death rate of {} per 1,000 people? | How many deaths per 1,000 people are there in {}? | Of 1,000 people, how many die each year in {}?",
    "",
    r"deaths/1,000 population",
)
_add(
    "fertility",
    "People and Society > Total fertility rate",
    "figure",
    "the total fertility rate of {} | the number of children born per woman in {} | how many children a woman in {} has",
    "What is the total fertility rate of {}? | How many children are born per woman in {}? | How many children does a woman in {} have on average?",
    "",
    r"children born/woman",
)
_add(
    "urban_population",
    "People and Society > Urbanization > urban population",
    "figure",
    "the share of the population of {} that lives in towns | the urban share of the population of {} | the share of people who live in cities in {}",
    "What percentage of the population of {} is urban? | What share of the people of {} live in towns, in percent? | How many percent of the population of {} live in cities?",
    "%",
    r"% of total population",
)
_add(
    "gdp",
    "Economy > GDP (official exchange rate)",
    "figure",
    "the gross domestic product of {} at the official exchange rate | the GDP (official exchange rate) of {} | the economic output of {} at the official exchange rate",
    "What is the GDP of {} at the official exchange rate, in US dollars? | How many US dollars is the gross domestic product of {} at the official exchange rate? | At the official exchange rate, what is the economic output of {} in US dollars?",
    "US dollars",
    "",
)
_add(
    "gdp_per_head_2023",
    "Economy > Real GDP per capita > Real GDP per capita 2023",
    "figure",
    "the real GDP per capita of {} in 2023 | the real gross domestic product per head of {} in 2023 | the real GDP of {} per person in 2023",
    "What was the real GDP per capita of {} in 2023, in US dollars? | How many US dollars was the real gross domestic product per head in {} in 2023? | Per person, what was the real GDP of {} in US dollars in 2023?",
    "US dollars",
    "",
)
_add(
    "unemployment_2023",
    "Economy > Unemployment rate > Unemployment rate 2023",
    "figure",
    "the unemployment rate of {} in 2023 | the share of people without work in {} in 2023 | the rate of unemployment in {} in 2023",
    "What was the unemployment rate of {} in 2023, in percent? | What percentage of the labour force was unemployed in {} in 2023? | How high was unemployment in {} in 2023, in percent?",
    "%",
    "%",
)
_add(
    "inflation_2023",
    "Economy > Inflation rate (consumer prices) > Inflation rate (consumer prices) 2023",
    "figure",
    "the inflation rate of {} in 2023 | the rise of consumer prices in {} in 2023 | the rate of inflation in {} in 2023",
    "What was the inflation rate of {} in 2023, in percent? | By how many percent did consumer prices rise in {} in 2023? | How high was inflation in {} in 2023, in percent?",
    "%",
    "%",
)
_add(
    "labor_force",
    "Economy > Labor force",
    "figure",
    "the labor force of {} | the number of people in the labor force of {} | the size of the labor force of {}",
    "How large is the labor force of {}? | How many people are in the labor force of {}? | What is the size of the labor force of {}?",
    "people",
    "",
)
_add(
    "airports",
    "Transportation > Airports",
    "figure",
    "the number of airports in {} | how many airports {} has | the count of airports in {}",
    "How many airports does {} have? | How many airports are there in {}? | What is the number of airports in {}?",
)
_add(
    "railways",
    "Transportation > Railways > total",
    "figure",
    "the total length of the railways of {} | the length of railway in {} | how far the railways of {} run",
    "How long are the railways of {} in total, in kilometres? | How many kilometres of railway are there in {}? | What is the total length of railway in {} in kilometres?",
    "km",
    "km",
)
_add(
    "merchant_ships",
    "Transportation > Merchant marine > total",
    "figure",
    "the number of ships in the merchant marine of {} | the size of the merchant marine of {} | how many merchant ships {} has",
    "How many ships does the merchant marine of {} have? | How many merchant ships does {} have? | What is the number of ships in the merchant marine of {}?",
)
_add(
    "internet_users",
    "Communications > Internet users > percent of population",
    "figure",
    "the share of the population of {} that uses the internet | the percentage of internet users in {} | the share of people online in {}",
    "What percentage of the population of {} uses the internet? | How many percent of the people of {} use the internet? | What share of the population of {} is online, in percent?",
    "%",
    "%",
)
_add(
    "mobile_phones",
    "Communications > Telephones - mobile cellular > total subscriptions",
    "figure",
    "the number of mobile telephone subscriptions in {} | the total of mobile cellular subscriptions in {} | how many mobile telephone contracts there are in {}",
    "How many mobile telephone subscriptions are there in {}? | What is the total number of mobile cellular subscriptions in {}? | How many subscriptions of mobile telephones does {} have?",
)
_add(
    "electricity",
    "Energy > Electricity > consumption",
    "figure",
    "the electricity consumption of {} | the amount of electricity that {} consumes | how much electricity {} uses",
    "How much electricity does {} consume, in kilowatt-hours? | What is the electricity consumption of {} in kilowatt-hours? | How many kilowatt-hours of electricity does {} use?",
    "kWh",
    "kWh",
)
_add(
    "carbon_dioxide",
    "Environment > Carbon dioxide emissions > total emissions",
    "figure",
    "the total carbon dioxide emissions of {} | the amount of carbon dioxide that {} emits | how much carbon dioxide comes from {}",
    "What are the total carbon dioxide emissions of {}, in tonnes? | How many tonnes of carbon dioxide does {} emit? | How much carbon dioxide comes from {}, in tonnes?",
    "tonnes",
    r"metric tonnes of CO2",
)
