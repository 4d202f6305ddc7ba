#include "base/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/text_file.hpp"

namespace forerun {
namespace {

/// Builds the tree from yaml-cpp's events; every limit is checked as events arrive.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const std::string> source, const YamlLimits& limits)
      : source_(std::move(source)), limits_(limits) {}

  [[nodiscard]] bool empty() const { return !done_; }
  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(Node::Kind::kNull, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto at = anchors_.find(anchor);
    if (at == anchors_.end()) refuse(mark, "an alias inside its own anchor");
    count(at->second.nodes, place(mark));
    Node copy = at->second.node;
    copy.mark = place(mark);
    add(std::move(copy), YAML::NullAnchor, at->second.nodes);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = make(Node::Kind::kScalar, mark);
    node.quoted = tag == "!";
    node.scalar = value;
    const bool null_word = !node.quoted && (value == "~" || value == "null" || value == "Null");
    if (null_word) node.kind = Node::Kind::kNull;
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kSequence, mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kMapping, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    int nodes = 1;
    bool have_key = false;
    std::string key;
    Mark key_mark;
    std::unordered_map<std::string, std::size_t> entry_of;  // key -> index in node.entries
  };
  struct Anchored {
    Node node;
    int nodes;
  };

  Mark place(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& problem,
                           const std::string& key = "") const {
    throw InputError(place(mark).place(), key, problem);
  }

  Node make(Node::Kind kind, const YAML::Mark& mark) {
    count(1, place(mark));
    Node node;
    node.kind = kind;
    node.mark = place(mark);
    return node;
  }

  void count(int nodes, const Mark& mark) {
    total_ += nodes;
    if (total_ > limits_.nodes) {
      throw InputError(mark.place(), "",
                       fmt::format("more than {} values with aliases expanded; the limit guards "
                                   "against alias bombs",
                                   limits_.nodes));
    }
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (static_cast<int>(stack_.size()) >= limits_.depth) {
      refuse(mark, fmt::format("nested deeper than {} levels", limits_.depth));
    }
    stack_.push_back({make(kind, mark), anchor, 1, false, {}, {}, {}});
  }

  void close() {
    Open top = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(top.node), top.anchor, top.nodes);
  }

  void add(Node node, YAML::anchor_t anchor, int nodes = 1) {
    if (anchor != YAML::NullAnchor) {
      count(nodes, node.mark);  // the anchor keeps a copy
      anchors_[anchor] = {node, nodes};
    }
    if (stack_.empty()) {
      root_ = std::move(node);
      done_ = true;
      return;
    }
    Open& parent = stack_.back();
    parent.nodes += nodes;
    if (parent.node.kind == Node::Kind::kSequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.have_key) {
      take_key(parent, node);
    } else {
      parent.have_key = false;
      parent.node.entries.push_back({std::move(parent.key), parent.key_mark, std::move(node)});
    }
  }

  void take_key(Open& parent, const Node& node) {
    if (node.kind != Node::Kind::kScalar) {
      throw InputError(node.mark.place(), "", "a key must be plain text, found " + describe(node));
    }
    if (node.scalar == "<<" && !node.quoted) {
      throw InputError(node.mark.place(), dotted(parent, "<<"),
                       "merge keys are not read: write the merged keys out");
    }
    const auto [at, fresh] = parent.entry_of.emplace(node.scalar, parent.node.entries.size());
    if (!fresh) {
      const Node::Entry& entry = parent.node.entries[at->second];
      throw InputError(
          node.mark.place(), dotted(parent, node.scalar),
          fmt::format("the key stands twice, first on line {} with {} and again on line {}; one of "
                      "them must go",
                      entry.key_mark.line, describe(entry.value), node.mark.line));
    }
    parent.have_key = true;
    parent.key = node.scalar;
    parent.key_mark = node.mark;
  }

  /// The dotted path of `key` in the mapping that is open at `parent`.
  std::string dotted(const Open& parent, const std::string& key) const {
    std::string path;
    for (const Open& open : stack_) {
      if (&open == &parent) break;
      if (open.have_key) path += open.key + ".";
    }
    return path + key;
  }

  std::shared_ptr<const std::string> source_;
  YamlLimits limits_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Node root_;
  bool done_ = false;
  int total_ = 0;
};

void refuse_tabs(const std::string& text, const std::string& name) {
  int line = 1;
  for (std::size_t start = 0; start < text.size(); ++line) {
    const std::size_t content = std::min(text.find_first_not_of(" \t", start), text.size());
    const std::size_t tab = std::string_view(text).substr(0, content).find('\t', start);
    if (tab != std::string_view::npos) {
      throw InputError({name, line, static_cast<int>(tab - start) + 1}, "",
                       "a tab is used for indentation; YAML wants spaces");
    }
    const std::size_t end = text.find('\n', start);
    if (end == std::string::npos) return;
    start = end + 1;
  }
}

/// The text without blank end: before it yaml-cpp takes the end of a file for a closing quote.
std::string without_blank_end(const std::string& text) {
  return text.substr(0, text.find_last_not_of(" \r\n") + 1);
}

/// The deepest bracket nesting of flow text: yaml-cpp recurses on it before any event is sent.
void refuse_deep_brackets(const std::string& text, const std::string& name, int limit) {
  int depth = 0, line = 1, column = 0;
  for (const char c : text) {
    ++column;
    if (c == '\n') ++line, column = 0;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > limit) {
      throw InputError({name, line, column}, "",
                       fmt::format("nested deeper than {} levels", limit));
    }
  }
}

}  // namespace

Node parse_yaml(const std::string& text, const std::string& name, const YamlLimits& limits) {
  if (text.empty()) throw InputError({name, 0, 0}, "", "the file is empty");
  const bool json = text.find_first_not_of(" \t\r\n") != std::string::npos &&
                    text[text.find_first_not_of(" \t\r\n")] == '{';
  if (!json) refuse_tabs(text, name);
  refuse_deep_brackets(text, name, limits.depth);
  TreeBuilder builder(std::make_shared<const std::string>(name), limits);
  try {
    std::istringstream stream(without_blank_end(text));
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    if (builder.empty()) throw InputError({name, 0, 0}, "", "the file holds no settings");
    TreeBuilder rest(std::make_shared<const std::string>(name), limits);
    if (parser.HandleNextDocument(rest) && !rest.empty()) {
      throw InputError(rest.take().mark.place(), "", "a second YAML document; one is wanted");
    }
  } catch (const YAML::Exception& error) {
    std::string problem = "not valid YAML: " + error.msg;  // which may quote a part of a character
    std::erase_if(problem, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    throw InputError({name, error.mark.line + 1, error.mark.column + 1}, "", problem);
  }
  return builder.take();
}

Node read_yaml_file(const std::string& path) {
  const TextFile file = read_text_file(path);
  return parse_yaml(file.text, file.name);
}

Node parse_yaml_value(const std::string& text, const std::string& name) {
  if (text.find_first_not_of(' ') == std::string::npos) {
    Node node;
    node.mark.source = std::make_shared<const std::string>(name);
    return node;
  }
  Node node = parse_yaml(text, name);
  return node;
}

}  // namespace forerun
