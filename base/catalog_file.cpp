#include "base/catalog_file.hpp"

#include "base/mapping_reader.hpp"
#include "base/nearest.hpp"
#include "base/yaml.hpp"

namespace forerun {

namespace {

constexpr int kLongestLine = 8;  // of entries that extend each other

Node read_entry(const DataPath& data, const std::string& folder, const std::string& kind,
                const std::string& name, const Place& place, const std::string& key) {
  const bool plain = name.find('/') == std::string::npos && !name.starts_with('.');
  const auto file = plain ? data.find(folder + "/" + name + ".yaml") : std::nullopt;
  if (file) return read_yaml_file(file->string());
  const std::vector<std::string> known = data.names(folder);
  Node found;  // for the shortened text of a very long name
  found.kind = Node::Kind::kScalar;
  found.scalar = name;
  throw InputError(place, key,
                   "unknown " + kind + " " + describe(found) + ", nearest '" +
                       nearest_word(name.substr(0, 100), known) + "'; known: " + join(known));
}

}  // namespace

Node read_catalog_file(const DataPath& data, const std::string& folder, const std::string& kind,
                       const std::string& name, const Place& place, const std::string& key) {
  std::vector<Node> line{read_entry(data, folder, kind, name, place, key)};
  while (const Node* extends = line.back().find("extends")) {
    const Place at = extends->mark.place();
    if (line.size() == kLongestLine) throw InputError(at, "extends", "entries extend each other");
    line.push_back(
        read_entry(data, folder, kind, to_text_value(*extends, "extends"), at, "extends"));
  }
  Node entry = std::move(line.back());
  for (line.pop_back(); !line.empty(); line.pop_back()) {
    std::erase_if(line.back().entries, [](const Node::Entry& e) { return e.key == "extends"; });
    entry = overlaid(std::move(entry), line.back());
  }
  return entry;
}

}  // namespace forerun
