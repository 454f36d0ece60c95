#include "experiments/harness/sweep/capacities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "experiments/harness/say.hpp"

namespace feedrate {
namespace {

/// A percentile of a few messages is meaningless. A try needs as many messages as this number divided by the tail's
/// share.
constexpr double kTails = 20;
constexpr double kLongest = 10;  // longest try at low rates, in multiples of the requested seconds
/// Share of a search's time that bracketing may take.
constexpr double kFirstShare = 0.5;
/// Number of rates in between that the terminal lists; the row has all of them.
constexpr std::size_t kListed = 4;

double messages_needed(const Slo& slo) { return kTails / slo.tail; }

}  // namespace

std::string text_without_rate(const ExperimentInfo& info, const Resolution& cell) {
  Values values = cell.values;
  values.erase(info.entry().searching.load->rate_axis);
  return info.text(values);
}

Capacities::Capacities(Session& session, Results& results, const std::vector<Resolution>& points, double resolution,
                       double seconds_each, std::size_t searches)
    : session_(session),
      load_(*session.info().entry().searching.load),
      results_(results),
      resolution_(resolution),
      seconds_(session.settings().seconds),
      seconds_each_(seconds_each),
      labels_(session.info(), points),
      progress_(session.info(), searches, 0),
      all_(searches) {
  for (const Json& row : results.earlier()) {
    if (row.value("kind", "") != "cell") continue;
    const std::string key = row.at("params").dump();
    ++measured_[key];
    if (row.value("cause", "") != text_of(Cause::interrupted)) earlier_[key].push_back(row);
  }
}

void Capacities::find(const Resolution& resolution, const std::vector<Slo>& slos, unsigned repetition) {
  std::uint64_t start = 0;
  for (const Slo& slo : slos) {
    Search search{resolution, slo, CapacitySearch(settings(slo, start)), answer_row(resolution, slo, repetition)};
    if (!resolution.impossible.empty()) {
      search.answer["status"] = "skipped";
      search.answer["cause"] = text_of(Cause::impossible);
      search.answer["reason"] = resolution.impossible;
    } else {
      phase_ = fmt::format("{}/{}", ++begun_, all_);
      do_part(search, kFirstShare, [&](const CapacitySearch::Try& probe) {
        if (start == 0) start = closed_rate(search.cell.values) / 2;
        search.boundary = CapacitySearch(settings(slo, start));
        search.boundary.find(probe);
        const auto [low, high] = search.boundary.boundary();
        start = std::max(low, high);
      });
    }
    if (interrupted()) return;
    searches_.push_back(std::move(search));
  }
}

void Capacities::settle(std::mt19937_64& random) {
  std::vector<Search*> open;
  std::vector<const CapacitySearch*> boundaries;
  for (Search& search : searches_) {
    if (search.answer["status"] != "ok") continue;
    open.push_back(&search);
    boundaries.push_back(&search.boundary);
  }
  phase_ = "settling";
  settle_in_rounds(boundaries, random, [&](std::size_t at) {
    return !interrupted() &&
           do_part(*open[at], 1, [&](const CapacitySearch::Try& probe) { open[at]->boundary.block(probe, random); });
  });
  if (interrupted()) return;
  const auto done = results_.done("capacity");
  for (Search& search : searches_) {
    if (done.contains(search.answer["id"].get<std::string>())) continue;
    results_.write(search.answer);
    progress_.end();
    fmt::print("{} {}: {}\n", text_without_rate(session_.info(), search.cell), search.slo.text,
               answer_text(search.answer));
    std::fflush(stdout);  // stdout may be a pipe
  }
}

void Capacities::print_table() const {
  std::map<std::string, std::vector<std::string>> lines;
  for (const Search& search : searches_) lines[name_of(search)].push_back(answer_text(search.answer));
  if (lines.empty()) return;
  say("Highest rates that meet the latency bound (highest rate sustained to lowest rate\nnot sustained):\n");
  for (const auto& [name, answers] : lines) {
    say("  {}\n", shortened(name, kColumns - 2));
    for (const std::string& answer : answers) say("    {}\n", wrapped(answer, 6, kColumns - 4));
  }
}

const std::string& Capacities::rate_figure() const {
  return load_.rate_figure.empty() ? session_.info().entry().rate : load_.rate_figure;
}

std::string Capacities::rate_text(double rate) const { return session_.info().text(rate_figure(), rate); }

std::string Capacities::answer_text(const Json& row) const {
  if (row["status"] != "ok")
    return fmt::format("{}: {}", row["status"].get<std::string>(), row["reason"].get<std::string>());
  const Json& found = row["capacity"];
  const double low = found["low"], high = found["high"];
  const std::string limit = found["limit"];
  std::string text;
  if (!found["undecided"]) {
    text = high == 0  ? "at least " + rate_text(low)
           : low == 0 ? "less than " + rate_text(high)
                      : rate_text(low) + " to " + rate_text(high);
  } else if (low == 0 && high == 0) {
    text = found.value("out_of_time", false) ? "undecided: the time ran out before a rate was judged"
                                             : "undecided: no rate was judged";
  } else {
    text = high == 0  ? "undecided above " + rate_text(low)
           : low == 0 ? "undecided below " + rate_text(high)
                      : "undecided between " + rate_text(low) + " and " + rate_text(high);
  }
  text += fmt::format(" ({} tries, {} of them disturbed", found["tries"].get<unsigned>(),
                      found["disturbed"].get<unsigned>());
  return text + between_text(found) + (limit.empty() ? "" : "; " + limit) + ")";
}

/// The rates between the ends of an undecided answer.
std::string Capacities::between_text(const Json& found) const {
  const Json& between = found["between"];
  if (between.empty()) return "";
  std::string text = fmt::format("; {} rate{} in between", between.size(), between.size() == 1 ? "" : "s");
  if (between.size() > kListed) return text;
  for (std::size_t i = 0; i < between.size(); ++i) {
    text += fmt::format("{} {} met in {} of {}", i == 0 ? ":" : ",", rate_text(between[i]["rate"]),
                        between[i]["kept"].get<unsigned>(), between[i]["tries"].get<unsigned>());
  }
  return text;
}

Json Capacities::answer_row(const Resolution& resolution, const Slo& slo, unsigned repetition) {
  Values any_rate = resolution.values;
  any_rate[load_.rate_axis] = std::uint64_t{0};
  const Json params = session_.info().axes().params(any_rate);
  Json identity = params;
  identity["slo"] = slo.text;
  Json answer = session_.answer_row(params, identity, repetition);
  answer["slo"] = {{"percentile", slo.percentile}, {"bound_ns", slo.bound_ns}, {"text", slo.text}};
  return answer;
}
std::string Capacities::name_of(const Search& search) const {
  return labels_.of(search.cell.values) + " " + search.slo.text;
}

double Capacities::longest_phase() const { return std::max(seconds_, session_.settings().warmup_seconds); }

SearchSettings Capacities::settings(const Slo& slo, std::uint64_t start) const {
  SearchSettings search;
  search.resolution = resolution_;
  search.least =
      std::max<std::uint64_t>(10, static_cast<std::uint64_t>(messages_needed(slo) / (kLongest * seconds_)) + 1);
  search.most = std::min(search.most, static_cast<std::uint64_t>(static_cast<double>(load_.max_due) / longest_phase()));
  search.start = std::clamp(start, search.least, search.most);
  return search;
}

/// Measures a point once more and writes the row. Measurements of an interrupted run are reused, because the resumed
/// search takes the same path.
Json Capacities::measure(const Values& point, double seconds) {
  const Resolution cell = session_.resolve(point);
  const std::string key = session_.info().axes().params(cell.values).dump();
  if (std::deque<Json>& earlier = earlier_[key]; !earlier.empty()) {
    Json row = std::move(earlier.front());
    earlier.pop_front();
    spent_ += row["time"].value("duration_seconds", 0.0);
    return row;
  }
  RunSettings longer = session_.settings();
  longer.seconds = seconds;
  const RunSettings usual = session_.exchange_settings(longer);
  Json row = results_.measure(session_, cell, measured_[key]++, {});
  session_.exchange_settings(usual);
  if (interrupted()) throw Failure("interrupted");
  results_.write(row);
  spent_ += row["time"].value("duration_seconds", 0.0);
  return row;
}

/// The rate of the point under closed load, as an upper bound to start from.
std::uint64_t Capacities::closed_rate(const Values& point) {
  const Json row = measure(load_.closed(point), seconds_);
  const auto rate = figure_of(row, rate_figure());
  if (!rate) throw Failure(fmt::format("closed load: {}", row["reason"].get<std::string>()));
  return static_cast<std::uint64_t>(*rate);
}

Probe Capacities::try_rate(Search& search, std::uint64_t rate) {
  Values point = search.cell.values;
  point[load_.rate_axis] = rate;
  const Json row = measure(point, std::max(seconds_, messages_needed(search.slo) / static_cast<double>(rate)));
  if (row["status"] == "failed") throw Failure(row["reason"].get<std::string>());
  search.answer["cost"] = row["cost"];
  Probe one = judge(rate, row, search.slo, load_.without_own_lag, load_.behind);
  progress_.show_now(fmt::format("[{}] {}  {}: {}", phase_, name_of(search), rate_text(static_cast<double>(rate)),
                                 one.kept ? "bound met" : one.why));
  progress_.keep();
  return one;
}

/// Runs a part of a search and records its result. The part may continue until `share` of the search's time is spent;
/// returns whether it ended before.
bool Capacities::do_part(Search& search, double share, const std::function<void(const CapacitySearch::Try&)>& part) {
  struct OutOfTime {};
  Json& answer = search.answer;
  const auto began = now_ns();
  bool ended = true;
  spent_ = search.spent;
  try {
    bool out_of_time = false;
    try {
      part([&](std::uint64_t rate) {
        if (seconds_each_ > 0 && spent_ > share * seconds_each_) throw OutOfTime{};
        return try_rate(search, rate);
      });
    } catch (const OutOfTime&) {
      out_of_time = true;
    }
    ended = !out_of_time;
    search.spent = spent_;
    const Capacity found = search.boundary.answer();
    answer["capacity"] = to_json(found);
    answer["capacity"]["resolution"] = resolution_;
    out_of_time = out_of_time && found.undecided;
    answer["capacity"]["out_of_time"] = out_of_time;
    std::string& limit = answer["capacity"]["limit"].get_ref<std::string&>();
    if (!limit.empty()) limit = fmt::format("at {} {}", rate_text(static_cast<double>(found.high)), limit);
    if (out_of_time) limit += limit.empty() ? "the time limit was reached" : "; the time limit was reached";
  } catch (const Failure& failure) {
    answer["status"] = text_of(Status::failed);
    answer["cause"] = text_of(interrupted() ? Cause::interrupted : Cause::error);
    answer["reason"] = failure.what();
    ended = false;
  }
  answer["time"]["duration_seconds"].get_ref<double&>() += static_cast<double>(now_ns() - began) / 1e9;
  return ended;
}

}  // namespace feedrate
